#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the fuzzed parser for a while over the corpus that is kept, and what grows of it.

    fuzz.py [PROGRAM]
    fuzz.py PROGRAM --grow RUNS SEED     adds what it finds to the corpus

The corpus is the job files of tests/job/corpus/ and tests/job/oracle/, and fuzz.corpus:
inputs that once reached new code. What an ordinary run finds is thrown away; it is bounded by
inputs, not by time, and always the same. SLUICE_SOAK=1: a hundred times as many.
Exit status 0, 77 (skipped), or 1 after printing the input that broke the parser.
"""
import ast
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, 'fuzz.corpus')
RUNS = 12000 * (100 if os.environ.get('SLUICE_SOAK') else 1)


def job_files():
    """A first letter says how to read them."""
    found = []
    for folder in ('corpus', 'oracle'):
        for path in sorted(glob.glob(os.path.join(HERE, folder, '*.fio'))):
            with open(path, 'rb') as f:
                found.append(b'0' + f.read())
    return found


def kept():
    with open(CORPUS) as f:
        return [ast.literal_eval(line) for line in f if not line.startswith('#')]


def put(folder, inputs):
    os.mkdir(folder)
    for number, data in enumerate(inputs):
        with open(os.path.join(folder, '%05d' % number), 'wb') as f:
            f.write(data)
    return folder


def fuzz(program, scratch, *options):
    done = subprocess.run([program, '-max_len=4096', '-timeout=20', '-rss_limit_mb=1024',
                           *options], cwd=scratch, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    print(done.stdout.decode('utf-8', 'replace'))
    for path in glob.glob(os.path.join(scratch, '*-*')):
        with open(path, 'rb') as f:
            print('%s: %r' % (os.path.basename(path), f.read()))
    return done.returncode


def run(program, scratch, runs, seed):
    """Leaves what was found in scratch/grown/."""
    return fuzz(program, scratch, '-runs=%d' % runs, '-seed=%d' % seed, '-print_final_stats=1',
                '-dict=' + os.path.join(HERE, 'fuzz.dict'),
                put(os.path.join(scratch, 'grown'), []),
                put(os.path.join(scratch, 'seeds'), job_files() + kept()))


def grow(program, scratch):
    merged = put(os.path.join(scratch, 'merged'), [])
    if fuzz(program, scratch, '-merge=1', merged, os.path.join(scratch, 'seeds'),
            os.path.join(scratch, 'grown')):
        return 1
    found = set()
    for name in os.listdir(merged):
        with open(os.path.join(merged, name), 'rb') as f:
            found.add(f.read())
    with open(CORPUS, 'w') as f:
        f.write('# Inputs that reached new code once, one a line, as Python writes bytes. '
                'See fuzz.py.\n')
        for data in sorted(found - set(job_files()), key=lambda data: (len(data), data)):
            f.write(repr(data) + '\n')
    return 0


def main():
    if len(sys.argv) < 2:
        print("skipped: clang's fuzzer runtime is missing (Debian: libclang-rt-14-dev)")
        return 77
    program = os.path.abspath(sys.argv[1])
    scratch = tempfile.mkdtemp(prefix='sluice-fuzz-')
    try:
        if sys.argv[2:3] == ['--grow']:
            return run(program, scratch, int(sys.argv[3]), int(sys.argv[4])) or grow(program,
                                                                                   scratch)
        return 1 if run(program, scratch, RUNS, 1) else 0
    finally:
        shutil.rmtree(scratch)


sys.exit(main())
