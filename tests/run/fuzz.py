#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one fuzzed parser for a while over the corpus that is kept, and what grows of it.

    fuzz.py FOLDER/NAME [PROGRAM]
    fuzz.py FOLDER/NAME PROGRAM --grow RUNS SEED    adds what it finds to the corpus

The corpus is what SEEDS says, and tests/FOLDER/fuzz_NAME.corpus: inputs that once reached new
code. Words of the language, if there is such a file, are in fuzz_NAME.dict. What an ordinary run
finds is thrown away; it is bounded by inputs, not by time, and always the same. SLUICE_SOAK=1: a
hundred times as many. Exit status 0, 77 (skipped), or 1 after printing the input that broke the
parser.
"""
import ast
import glob
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Inputs in an ordinary run, and files to begin with, each behind what says how to read it.
TARGETS = {
    'base/ini': (20000, [(b'', 'machines/*.ini'), (b'', 'experiments/*.ini')]),
    'base/units': (50000, []),
    'job/number': (50000, []),
    'job/parse': (12000, [(b'0', 'tests/job/corpus/*.fio'), (b'0', 'tests/job/oracle/*.fio')]),
    'lab/experiment': (1000, [(b'm', 'machines/*.ini'), (b'x', 'experiments/*.ini'),
                              (b'x', 'tests/lab/*.ini')]),
    'lab/journal': (20000, []),
    'lib/config': (20000, []),
}


def seeds(target):
    found = []
    for prefix, pattern in TARGETS[target][1]:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
            with open(path, 'rb') as f:
                found.append(prefix + f.read())
    return found


def kept_in(target, what):
    folder, name = target.split('/')
    return os.path.join(ROOT, 'tests', folder, 'fuzz_%s.%s' % (name, what))


def kept(target):
    path = kept_in(target, 'corpus')
    if not os.path.exists(path):
        return []
    with open(path) as f:
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


def run(target, program, scratch, runs, seed):
    """Leaves what was found in scratch/grown/."""
    words = kept_in(target, 'dict')
    return fuzz(program, scratch, '-runs=%d' % runs, '-seed=%d' % seed, '-print_final_stats=1',
                *(['-dict=' + words] if os.path.exists(words) else []),
                put(os.path.join(scratch, 'grown'), []),
                put(os.path.join(scratch, 'seeds'), seeds(target) + kept(target)))


def grow(target, program, scratch):
    merged = put(os.path.join(scratch, 'merged'), [])
    if fuzz(program, scratch, '-merge=1', merged, os.path.join(scratch, 'seeds'),
            os.path.join(scratch, 'grown')):
        return 1
    found = set()
    for name in os.listdir(merged):
        with open(os.path.join(merged, name), 'rb') as f:
            found.add(f.read())
    with open(kept_in(target, 'corpus'), 'w') as f:
        f.write('# Inputs that reached new code once, one a line, as Python writes bytes. '
                'See tests/run/fuzz.py.\n')
        for data in sorted(found - set(seeds(target)), key=lambda data: (len(data), data)):
            f.write(repr(data) + '\n')
    return 0


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit('usage: fuzz.py FOLDER/NAME [PROGRAM [--grow RUNS SEED]]; there are ' +
                 ' '.join(TARGETS))
    if len(sys.argv) < 3:
        print("skipped: clang's fuzzer runtime is missing (Debian: libclang-rt-14-dev)")
        return 77
    target, program = sys.argv[1], os.path.abspath(sys.argv[2])
    runs = TARGETS[target][0] * (100 if os.environ.get('SLUICE_SOAK') else 1)
    scratch = tempfile.mkdtemp(prefix='sluice-fuzz-')
    try:
        if sys.argv[3:4] == ['--grow']:
            return (run(target, program, scratch, int(sys.argv[4]), int(sys.argv[5]))
                    or grow(target, program, scratch))
        return 1 if run(target, program, scratch, runs, 1) else 0
    finally:
        shutil.rmtree(scratch)


sys.exit(main())
