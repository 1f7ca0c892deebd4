#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What clang-tidy (.clang-tidy) and cppcheck (tests/lint/cppcheck.txt) say of src/: nothing.

    lint.py [FILE...]       those files; without: all of src/

Writes below build-lint/. Exit status 1 after printing what they said.
"""
import concurrent.futures
import glob
import os
import sys

sys.dont_write_bytecode = True
import run

BUILD = os.path.join(run.ROOT, 'build-lint')
# cppcheck does not look into headers of others. That this begins a loop is all it has to know.
FOREACH = 'json_array_foreach(array,i,value)=while((value)=json_array_get(array,(i)=0))'


def environment(**more):
    return run.environment(TMPDIR=BUILD, **more)


def configure():
    """What clang-tidy needs to know: how each file is compiled."""
    if not os.path.exists(os.path.join(BUILD, 'build.ninja')):
        os.makedirs(BUILD, exist_ok=True)
        status, output = run.run(['meson', 'setup', BUILD, '-Dchecks=true'],
                                 environment(CC='clang'))
        if status:
            sys.exit(output)


def cppcheck(files):
    return run.run(['cppcheck', '--quiet', '--language=c', '--std=c11', '--platform=unix64',
                    '--enable=warning,performance,portability', '--error-exitcode=1',
                    '--suppressions-list=tests/lint/cppcheck.txt',
                    '--template={file}:{line}: {message} [{id}]', '-j%d' % run.JOBS,
                    '-Iinclude', '-Isrc', '-D_GNU_SOURCE', '-DSLUICE_VERSION=""',
                    '-DSLUICE_CHECKS', '-D' + FOREACH] + files, environment())


def clang_tidy(file):
    return run.run(['clang-tidy', '-p', BUILD, '--quiet', file], environment())


def main():
    files = sys.argv[1:] or sorted(os.path.relpath(f, run.ROOT)
                                   for f in glob.glob(os.path.join(run.ROOT, 'src', '*', '*.c')))
    configure()
    failed = 0
    status, output = cppcheck(files)
    if status:
        failed += 1
        run.say(output.rstrip('\n'))
    run.say('cppcheck: %s' % ('see above' if status else 'nothing'))
    with concurrent.futures.ThreadPoolExecutor(run.JOBS) as pool:
        for file, (status, output) in zip(files, pool.map(clang_tidy, files)):
            if status:
                failed += 1
                run.say('\n'.join(line for line in output.splitlines() if ' error: ' in line))
    run.say('clang-tidy: %d of %d files with complaints' % (failed, len(files)))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
