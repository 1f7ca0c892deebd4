#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which lines of src/ the tests run (gcc --coverage, gcov).

    coverage.py [--keep]    --keep: count what the last runs have left; no tests are run

Builds in build-coverage/, runs every test but a few (LEFT_OUT below), prints the share of
lines a folder and the files with the most lines left out, with the lines. Exit status 1 if a
test failed, or a folder has less than what is asked of it. A line counts as run if any copy of it
(inline functions have many) was.
"""
import concurrent.futures
import glob
import gzip
import json
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
import run
import tap

BUILD = os.path.join(run.ROOT, 'build-coverage')
TEMPORARY = os.path.join(BUILD, 'tmp')
# They run the same code as shorter ones, for longer; or look at the library itself, which here has
# what counts the lines in it.
LEFT_OUT = re.compile(r'^cli/(published_|pinned)|^file/property_tight$|^cli/library$')
STRICT = ('ledger', 'cache', 'writeback', 'file')
WANTED = {True: 95.0, False: 85.0}
WORST = 20
# Programs whose objects count: the rest are tests.
OBJECTS = ('libengine.a.p', 'libcore.a.p', 'sluice.p')


def environment(**more):
    return run.environment(TMPDIR=TEMPORARY, **more)


def build():
    os.makedirs(TEMPORARY, exist_ok=True)
    if not os.path.exists(os.path.join(BUILD, 'build.ninja')):
        status, output = run.run(['meson', 'setup', BUILD, '-Db_coverage=true', '-Dchecks=true',
                                  '-Dbuildtype=debug', '-Doptimization=g', '-Dwerror=false'],
                                 environment(CC='gcc'))
        if status:
            sys.exit(output)
    status, output = run.run(['ninja', '-C', BUILD, '-j%d' % run.JOBS], environment())
    if status:
        sys.exit(output)


def run_tests():
    """The tally of all tests that are not left out."""
    for path in glob.glob(os.path.join(BUILD, '**', '*.gcda'), recursive=True):
        os.remove(path)
    total = tap.Tally()
    with concurrent.futures.ThreadPoolExecutor(run.JOBS) as pool:
        running = [pool.submit(run.program, t['name'], t['cmd'], environment(**t['env']),
                               4 * t['timeout'], t['workdir'] or BUILD,
                               tap.count if t['protocol'] == 'tap' else tap.count_exit)
                   for t in run.tests_of(BUILD) if not LEFT_OUT.search(t['name'])]
        for done in running:
            name, tally, output = done.result()
            if tally.failed:
                run.report(name, tally, output)
            total.add(tally)
    return total


def gcov(folder):
    """What gcov says of the objects in a folder, file by file."""
    notes = sorted(glob.glob(os.path.join(BUILD, folder, '*.gcno')))
    with tempfile.TemporaryDirectory(dir=TEMPORARY) as scratch:
        # next to a .gcno without a .gcda all lines are known, and none was run
        status, output = run.run(['gcov', '--json-format', '--preserve-paths'] + notes,
                                 environment(), folder=scratch)
        if status:
            sys.exit(output)
        for path in glob.glob(os.path.join(scratch, '*.json.gz')):
            with gzip.open(path, 'rt') as f:
                data = json.load(f)
            for file in data['files']:
                yield data['current_working_directory'], file


def lines_of():
    """{path below src/: {line: times run}}"""
    found = {}
    source = os.path.join(run.ROOT, 'src') + os.sep
    for folder in OBJECTS:
        for at, file in gcov(folder):
            path = os.path.normpath(os.path.join(at, file['file']))
            if not path.startswith(source):
                continue
            lines = found.setdefault(path[len(source):], {})
            for line in file['lines']:
                number = line['line_number']
                lines[number] = max(lines.get(number, 0), line['count'])
    return found


def ranges(numbers):
    """[1, 2, 3, 7] as "1-3 7"."""
    parts = []
    for n in numbers:
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ' '.join('%d' % a if a == b else '%d-%d' % (a, b) for a, b in parts)


def share(run_lines, all_lines):
    return 100.0 * run_lines / all_lines if all_lines else 100.0


def report(found):
    """Prints the table; the folders that have too little."""
    short = []
    folders = {}
    for path, lines in found.items():
        sums = folders.setdefault(path.split(os.sep)[0], [0, 0])
        sums[0] += sum(1 for count in lines.values() if count)
        sums[1] += len(lines)
    run.say('%-12s %8s %8s %8s' % ('folder', 'lines', 'run', 'wanted'))
    for folder, (ran, lines) in sorted(folders.items()):
        wanted = WANTED[folder in STRICT]
        low = share(ran, lines) < wanted
        run.say('%-12s %8d %7.1f%% %7.0f%%%s' % (folder, lines, share(ran, lines), wanted,
                                               '  too little' if low else ''))
        if low:
            short.append(folder)
    missed = {path: [n for n, count in sorted(lines.items()) if not count]
              for path, lines in found.items()}
    run.say('files with the most lines that no test runs:')
    for path in sorted(missed, key=lambda p: (-len(missed[p]), p))[:WORST]:
        if missed[path]:
            run.say('  %-32s %5.1f%%  %s' % (
                path, share(len(found[path]) - len(missed[path]), len(found[path])),
                ranges(missed[path])))
    return short


def main():
    if sys.argv[1:] not in ([], ['--keep']):
        sys.exit('usage: coverage.py [--keep]')
    total = tap.Tally()
    if not sys.argv[1:]:
        run.say('building in build-coverage/')
        build()
        run.say('running the tests')
        total = run_tests()
        for name, reason in total.skipped:
            run.say('skipped: %s (%s)' % (name, reason))
        run.say(total.summary())
    short = report(lines_of())
    for folder in short:
        run.say('too little of src/%s/ is run' % folder)
    return 1 if short or total.failed else 0


if __name__ == '__main__':
    sys.exit(main())
