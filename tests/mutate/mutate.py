#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether the tests notice: puts the faults of tests/mutate/*.txt into the engine, one at a time,
and runs tests until one fails.

    mutate.py [--near] [NAME...]    those faults, or those of an area (ledger, cache, ...), or all;
                                    --near: without the tests of other folders
    mutate.py --verify              only whether the text of every fault is still there, once

A fault:

    [name]
    file src/cache/state.c
    breaks what it does wrong, in a few words
    tests cache/state file/sync
     a line of context
    -the line as it is
    +the line as it must not be

The lines as they are, context and `-` ones together, are whole lines of the file, and are found in
it once: a fault that is not is an error that names it. A line "..." goes on elsewhere in the file.
`tests` are those that should catch it; they are run first, then those of the file's folder, then
all.

It works on a copy of the tree, in build-mutate/, with -Dchecks=true, and builds only what the next
tests need. A test counts only if it passes without the fault. The last line is "N caught, N
survived"; the exit status is 1 if any survived or could not be tried.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'run'))
import run
import tap

WORK = os.path.join(run.ROOT, 'build-mutate')
TREE = os.path.join(WORK, 'tree')
BUILD = os.path.join(WORK, 'build')
# What a test may take with a fault in it before it counts as hanging.
TIMEOUT = 120
JOBS = int(os.environ.get('MUTATE_JOBS', 0)) or max(2, os.cpu_count() or 1)


def environment(**more):
    return run.environment(TMPDIR=os.path.join(WORK, 'tmp'), **more)


class Wrong(Exception):
    """A list of faults that cannot be used."""


class Fault:
    def __init__(self, name, area, where):
        self.name, self.area, self.where = name, area, where
        self.file = self.breaks = None
        self.tests = []
        self.hunks = [([], [])]  # lines before, lines after

    def check(self):
        for what in ('file', 'breaks', 'tests'):
            if not getattr(self, what):
                raise Wrong('%s: fault "%s" has no line "%s ..."' % (self.where, self.name, what))
        for before, after in self.hunks:
            if before == after or not before:
                raise Wrong('%s: fault "%s" changes nothing' % (self.where, self.name))

    def put_into(self, text):
        """The text of the file with the fault in it."""
        text = '\n' + text  # so that all lines begin alike
        for before, after in self.hunks:
            before, after = ('\n'.join([''] + lines + ['']) for lines in (before, after))
            found = text.count(before)
            if found != 1:
                raise Wrong('%s: the text of fault "%s" is in %s %s'
                            % (self.where, self.name, self.file,
                               'no more' if not found else '%d times' % found))
            text = text.replace(before, after)
        return text[1:]


def read_list(path, label=None):
    area = os.path.splitext(os.path.basename(path))[0]
    faults, fault = [], None
    with open(path, encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip('\n')
            where = '%s:%d' % (label or os.path.relpath(path, run.ROOT), number)
            if line.startswith('#') or not line:
                continue
            if re.fullmatch(r'\[[\w-]+\]', line):
                fault = Fault(line[1:-1], area, where)
                faults.append(fault)
                continue
            if not fault:
                raise Wrong('%s: a fault begins with its name, [name]' % where)
            key, _, rest = line.partition(' ')
            if line[0] in ' -+':
                if line[0] != '+':
                    fault.hunks[-1][0].append(line[1:])
                if line[0] != '-':
                    fault.hunks[-1][1].append(line[1:])
            elif line == '...':
                fault.hunks.append(([], []))
            elif key in ('file', 'breaks'):
                setattr(fault, key, rest.strip())
            elif key == 'tests':
                fault.tests = rest.split()
            else:
                raise Wrong('%s: a line of a fault begins with file, breaks, tests, "...", '
                            '"-", "+" or a blank' % where)
    for fault in faults:
        fault.check()
    return faults


def read_lists():
    faults = []
    for path in sorted(glob.glob(os.path.join(HERE, '*.txt'))):
        faults += read_list(path)
    names = [f.name for f in faults] + sorted({f.area for f in faults})
    for name in names:
        if names.count(name) > 1:
            raise Wrong('tests/mutate: "%s" names two things' % name)
    return faults


def read_file(folder, fault):
    try:
        with open(os.path.join(folder, fault.file), encoding='utf-8') as f:
            return f.read()
    except FileNotFoundError:
        raise Wrong('%s: fault "%s": there is no file %s'
                    % (fault.where, fault.name, fault.file)) from None


def verify(faults):
    """Complaints: one for each fault that no longer fits the tree."""
    found = []
    for fault in faults:
        try:
            fault.put_into(read_file(run.ROOT, fault))
        except Wrong as error:
            found.append(str(error))
    return found


def write_if_other(path, data):
    """Leaves the time of a file that is as it should be alone, so that it is not built again."""
    if os.path.exists(path):
        with open(path, 'rb') as f:
            if f.read() == data:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as f:
        f.write(data)


def copy_tree():
    """Makes TREE what the tree is: without hidden files and what was built."""
    wanted = set()
    for folder, folders, files in os.walk(run.ROOT):
        at_top = os.path.samefile(folder, run.ROOT)
        folders[:] = [f for f in folders if f[0] != '.' and f != '__pycache__'
                      and not (at_top and f.startswith('build'))]
        for name in files:
            source = os.path.join(folder, name)
            target = os.path.join(TREE, os.path.relpath(source, run.ROOT))
            wanted.add(target)
            with open(source, 'rb') as f:
                write_if_other(target, f.read())
            shutil.copymode(source, target)
    for folder, _, files in os.walk(TREE):
        for name in files:
            if os.path.join(folder, name) not in wanted:
                os.remove(os.path.join(folder, name))


class Bench:
    """The copy, built, and what is known of its tests."""

    def __init__(self):
        copy_tree()
        if not os.path.exists(os.path.join(BUILD, 'build.ninja')):
            self.must(['meson', 'setup', BUILD, TREE, '-Dchecks=true', '-Dbuildtype=debug',
                       '-Db_colorout=never', '-Dwerror=false'])
        else:
            self.must(['ninja', '-C', BUILD, 'build.ninja'])
        self.tests = {t['name']: t for t in run.tests_of(BUILD)}
        self.trusted = {}  # name: whether it passes without a fault

    def must(self, command):
        status, output = run.run(command, environment(), folder=run.ROOT)
        if status:
            raise Wrong('%s\n%s failed' % (output, ' '.join(command)))

    def stages(self, fault, near_only):
        """Lists of tests, the likely ones first."""
        folder = fault.file.split('/')[1] + '/'
        listed = [self.tests[name] for name in fault.tests]
        near = [t for name, t in self.tests.items()
                if name.startswith(folder) and t not in listed]
        rest = [t for t in self.tests.values() if t not in listed and t not in near]
        return [stage for stage in (listed, near, [] if near_only else rest) if stage]

    def build(self, tests):
        targets = run.targets_of(BUILD, tests)
        return run.run(['ninja', '-C', BUILD, '-j%d' % JOBS] + targets, environment())

    def fails(self, test):
        env = environment(**test['env'])
        status, output = run.run(test['cmd'], env, min(test['timeout'], TIMEOUT),
                                 test['workdir'] or BUILD)
        count = tap.count if test['protocol'] == 'tap' else tap.count_exit
        return count(test['name'], output, status).failed

    def first_failure(self, tests):
        """The name of a test that passes without a fault and fails now, or None."""
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            running = {pool.submit(self.fails, t): t for t in tests
                       if self.trusted.get(t['name'], True)}
            for done in concurrent.futures.as_completed(running):
                if done.result():
                    for other in running:
                        other.cancel()
                    return running[done]['name'], done.result()[0]
        return None, None

    def trust(self, faults):
        """Learns which of the listed tests pass as things are."""
        names = sorted({name for fault in faults for name in fault.tests})
        for fault in faults:
            for name in fault.tests:
                if name not in self.tests:
                    raise Wrong('%s: fault "%s": there is no test %s'
                                % (fault.where, fault.name, name))
        listed = [self.tests[name] for name in names]
        status, output = self.build(listed)
        if status:
            raise Wrong(output + '\nit does not build without a fault either')
        for test in listed:
            if not self.is_trusted(test):
                raise Wrong('%s fails without a fault, too' % test['name'])

    def is_trusted(self, test):
        if test['name'] not in self.trusted:
            self.trusted[test['name']] = not self.fails(test)
        return self.trusted[test['name']]

    def try_fault(self, fault, near_only):
        """(word, detail): caught and by whom, survived, or what was wrong."""
        path = os.path.join(TREE, fault.file)
        clean = read_file(TREE, fault)
        try:
            write_if_other(path, fault.put_into(clean).encode())
            for stage in self.stages(fault, near_only):
                status, output = self.build(stage)
                if status:
                    return 'does not build', output
                name, failure = self.first_failure(stage)
                while name and name not in self.trusted:
                    # one that was not listed: is it the fault, or did it fail before?
                    write_if_other(path, clean.encode())
                    self.build([self.tests[name]])
                    self.is_trusted(self.tests[name])
                    write_if_other(path, fault.put_into(clean).encode())
                    self.build(stage)
                    if not self.trusted[name]:
                        name, failure = self.first_failure(stage)
                if name:
                    return 'caught', failure
            return 'survived', fault.breaks
        finally:
            write_if_other(path, clean.encode())


def chosen(faults, words):
    for word in words:
        if word not in {f.name for f in faults} | {f.area for f in faults}:
            raise Wrong('no fault and no area is called "%s"; there are: %s'
                        % (word, ' '.join(f.name for f in faults)))
    return [f for f in faults if not words or f.name in words or f.area in words]


def mutate(words):
    near_only = words[:1] == ['--near']
    words = words[near_only:]
    faults = chosen(read_lists(), words)
    stale = verify(faults)
    if stale:
        raise Wrong('\n'.join(stale))
    os.makedirs(os.path.join(WORK, 'tmp'), exist_ok=True)
    run.say('building the tests of %d faults' % len(faults))
    bench = Bench()
    bench.trust(faults)
    outcomes = []
    for fault in faults:
        word, detail = bench.try_fault(fault, near_only)
        outcomes.append(word)
        run.say('  %-14s %-28s %s' % (word, fault.name, detail))
    failed = outcomes.count('does not build')
    if failed:
        run.say('%d did not build' % failed)
    run.say('%d caught, %d survived' % (outcomes.count('caught'), outcomes.count('survived')))
    return 1 if failed or 'survived' in outcomes else 0


def main():
    try:
        if sys.argv[1:] == ['--verify']:
            stale = verify(read_lists())
            if stale:
                raise Wrong('\n'.join(stale))
            return 0
        return mutate(sys.argv[1:])
    except Wrong as error:
        sys.stderr.write('mutate: %s\n' % error)
        return 1


if __name__ == '__main__':
    sys.exit(main())
