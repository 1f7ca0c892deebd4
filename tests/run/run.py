#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The whole check: format, tidiness, builds, and every test in every build.

    run.py check        what must pass before a change is taken
    run.py soak         the tests with SLUICE_SOAK=1 in the environment: those that
                        draw their cases at random draw many more; some under valgrind;
                        what clang-tidy and cppcheck say

Everything it writes goes below build-check/. The last line is
"N passed, N failed, N skipped"; the exit status is 1 if anything failed.
"""
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import tap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(ROOT, 'build-check')
JOBS = max(2, os.cpu_count() or 1)

EVERY = re.compile('')
# Experiments at their full size, and other people's programs, take too long in all but one build.
SMALL = re.compile(r'^(?!.*/(published_|mount_clients))')
# Tests with real threads in them: only those can show thread sanitizer a race.
THREADED = re.compile(r'^world/|/real(_|$)')
WORLD = re.compile(r'^world/')
FUZZED = re.compile(r'/fuzz_')
# Without fibers, whose stacks valgrind does not know, without threads, which it runs in turn, and
# without long double, which it computes in 64 bits.
VALGRINDED = re.compile(r'^(base|cache|ledger)/(?!real_|fuzz_|hist$|reclaim$|memory$)|^job/parse$')

# name, compiler, options, the tests to run in it (None: it need only build)
BUILDS = [
    ('gcc', 'gcc', ['-Dchecks=true'], EVERY),
    ('release', 'gcc', ['-Dbuildtype=release'], None),
    ('clang', 'clang', [], None),
    ('asan', 'gcc', ['-Dchecks=true', '-Db_sanitize=address,undefined'], SMALL),
    ('tsan', 'gcc', ['-Dchecks=true', '-Db_sanitize=thread'], THREADED),
    ('ucontext', 'gcc', ['-Dchecks=true', '-Dfiber=ucontext'], WORLD),
    ('fuzz', 'clang', ['-Dfuzz=true', '-Db_sanitize=address', '-Db_lundef=false'], FUZZED),
]
# The builds whose programs must predict the same: all that differ in what code they are.
AGREEING = ['gcc', 'release', 'clang', 'asan', 'ucontext']


def environment(**more):
    env = {k: v for k, v in os.environ.items()
           if k not in ('CC', 'CFLAGS', 'CPPFLAGS', 'LDFLAGS', 'SLUICE_SOAK')}
    env.update(LC_ALL='C', TERM='dumb', TMPDIR=os.path.join(WORK, 'tmp'),
               PYTHONDONTWRITEBYTECODE='1',
               ASAN_OPTIONS='detect_leaks=1:abort_on_error=0',
               UBSAN_OPTIONS='halt_on_error=1:print_stacktrace=1',
               TSAN_OPTIONS='second_deadlock_stack=1')
    env.update(more)
    return env


def run(command, env, timeout=None, folder=ROOT):
    """(status, output): both streams in one; status None when time ran out. What the command
    started dies with it."""
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        status = None
    return status, output.decode('utf-8', 'replace')


def say(text):
    print(text, flush=True)


def report(name, tally, output):
    if tally.failed:
        say('--- output of %s' % name)
        say(output.rstrip('\n'))
        say('---')
    say('  %-40s %s' % (name, tally.summary()))


def step(total, name, status, output):
    """A command that is one case: it passed or failed as a whole."""
    tally = tap.Tally()
    if status:
        tally.failed.append(name)
    else:
        tally.passed = 1
    report(name, tally, output)
    total.add(tally)
    return not status


def program(name, command, env, timeout=None, folder=ROOT, count=tap.count):
    status, output = run(command, env, timeout, folder)
    return name, count(name, output, status), output


def sources():
    found = []
    for top in ('include', 'src', 'examples', 'tests', 'bench'):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            found += [os.path.join(folder, f) for f in files if f.endswith(('.c', '.h'))]
    return sorted(os.path.relpath(f, ROOT) for f in found)


def configure(name, compiler, options):
    """A command that leaves build-check/NAME configured with exactly these options."""
    build = os.path.join(WORK, name)
    stamp = os.path.join(build, 'options.json')
    wanted = json.dumps([compiler] + options)
    if os.path.exists(stamp):
        with open(stamp) as f:
            if f.read() == wanted:
                # what meson knows of the tests must be as new as the meson.build files
                return run(['ninja', '-C', build, 'build.ninja'], environment())
    shutil.rmtree(build, ignore_errors=True)
    status, output = run(['meson', 'setup', build, '-Dwerror=true', '-Db_colorout=never']
                         + options, environment(CC=compiler))
    if not status:
        with open(stamp, 'w') as f:
            f.write(wanted)
    return status, output


def introspect(what, build):
    return json.loads(subprocess.run(['meson', 'introspect', what, build], check=True,
                                     stdout=subprocess.PIPE).stdout)


def tests_of(build):
    return sorted(introspect('--tests', build), key=lambda t: t['name'])


def targets_of(build, tests):
    """What ninja must build for these tests."""
    needed = {target for t in tests for target in t['depends']}
    return sorted(os.path.relpath(file, build) for target in introspect('--targets', build)
                  if target['id'] in needed for file in target['filename'])


def without_address_randomization():
    """gcc 12's thread sanitizer dies at once on kernels that spread mappings wider than it
    knows. Where containers forbid switching that off, it has to do without."""
    prefix = ['setarch', '-R']
    try:
        done = subprocess.run(prefix + ['true'], stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        return []
    return prefix if done.returncode == 0 else []


def build_and_test(total, build, soak):
    name, compiler, options, select = build
    folder = os.path.join(WORK, name)
    label = 'build %s (%s)' % (name, ' '.join([compiler] + options))
    status, output = configure(name, compiler, options)
    if status:
        step(total, label, status, output)
        return
    chosen = [t for t in tests_of(folder) if select and select.search(t['name'])]
    if select in (EVERY, SMALL, None):
        targets = []  # all there is
    else:
        targets = ['sluice'] + targets_of(folder, chosen)
    if not step(total, label, *run(['ninja', '-C', folder] + targets, environment())):
        return
    prefix = without_address_randomization() if name == 'tsan' else []
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        running = []
        for t in chosen:
            env = environment(**t['env'])
            if soak:
                env['SLUICE_SOAK'] = '1'
            # where meson starts tests, too
            running.append(pool.submit(
                program, '%s %s' % (name, t['name']), prefix + t['cmd'], env,
                None if soak else t['timeout'], t['workdir'] or folder,
                tap.count if t['protocol'] == 'tap' else tap.count_exit))
        for done in running:
            result = done.result()
            report(*result)
            total.add(result[1])


def valgrind(total):
    """Some tests of the first build once more."""
    folder = os.path.join(WORK, BUILDS[0][0])
    for t in tests_of(folder):
        if VALGRINDED.search(t['name']):
            result = program('valgrind ' + t['name'],
                             ['valgrind', '-q', '--error-exitcode=99', '--leak-check=full',
                              '--errors-for-leak-kinds=definite',
                              '--show-leak-kinds=definite'] + t['cmd'],
                             environment(**t['env']), None, t['workdir'] or folder)
            report(*result)
            total.add(result[1])


def lint(total):
    step(total, 'lint', *run([sys.executable, 'tests/run/lint.py'], environment()))


def agree(total):
    programs = [os.path.join(WORK, name, 'sluice') for name in AGREEING]
    if all(os.path.exists(path) for path in programs):  # else a build has failed already
        result = program('agree', [sys.executable, 'tests/cli/agree.py'] + programs, environment())
        report(*result)
        total.add(result[1])


def unformatted():
    status, output = run(['clang-format', '--dry-run', '-Werror'] + sources(), environment())
    wrong = sorted(set(re.findall(r'^([^\s:]+):\d+:\d+: error:', output, re.MULTILINE)))
    if wrong:
        output = '\n'.join(['./dev fmt would change:'] + wrong)
    return status, output


def tidy(total):
    env = environment()
    step(total, 'clang-format', *unformatted())
    for name, script in (('tidy', 'tests/tidy/tidy.py'),
                         ('tidy self-test', 'tests/tidy/self_test.py'),
                         ('counting self-test', 'tests/run/self_test.py')):
        result = program(name, [sys.executable, script], env)
        report(*result)
        total.add(result[1])
    step(total, 'faults to put in', *run([sys.executable, 'tests/mutate/mutate.py', '--verify'],
                                         env))


def main():
    what = sys.argv[1] if len(sys.argv) == 2 else ''
    if what not in ('check', 'soak'):
        sys.exit('usage: run.py check|soak')
    temporary = os.path.join(WORK, 'tmp')
    shutil.rmtree(temporary, ignore_errors=True)
    os.makedirs(temporary)
    total = tap.Tally()
    if what == 'check':
        tidy(total)
    for build in BUILDS:
        if what == 'check' or build[3] is not None:
            build_and_test(total, build, what == 'soak')
    if what == 'check':
        agree(total)
    else:
        valgrind(total)
        lint(total)
    shutil.rmtree(temporary, ignore_errors=True)
    for name, reason in total.skipped:
        say('skipped: %s (%s)' % (name, reason))
    for name in total.failed:
        say('failed: %s' % name)
    say(total.summary())
    return 1 if total.failed else 0


if __name__ == '__main__':
    sys.exit(main())
