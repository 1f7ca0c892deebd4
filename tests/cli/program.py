# SPDX-License-Identifier: MIT
"""What the tests of the program share: running it, and saying TAP about it.

A test file defines functions test_...(), each of which is one case, and ends with
program.main(globals()). It is started as: python3 FILE PROGRAM, from anywhere.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SMALL = os.path.join(ROOT, 'tests', 'lab', 'small.ini')
SLUICE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ''


class Skip(Exception):
    """Raised by a case that cannot be run here, with the reason."""


class Done:
    """What one run of the program left behind."""

    def __init__(self, process):
        self.status = process.returncode
        self.out = process.stdout.decode()
        self.err = process.stderr.decode()


def sluice(*words, **options):
    return Done(subprocess.run([SLUICE, *words], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options))


def sixteenth_of_p2():
    """Writes experiments/p2.ini into the current folder with a sixteenth of its memory and files
    and a quarter of its time, which still throttles; returns its name."""
    folder = os.path.join(ROOT, 'experiments')
    for name in os.listdir(folder):
        if name.startswith('p2'):
            with open(os.path.join(folder, name)) as f:
                text = f.read()
            text = text.replace('size=3g', 'size=192m').replace('runtime=120', 'runtime=30')
            text = text.replace('machine = ..', 'machine = ' + ROOT)
            if name == 'p2.ini':
                text += '\n[machine]\nmemory = 8GiB\nreserve = 372MiB\n'
            with open(name, 'w') as f:
                f.write(text)
    return 'p2.ini'


def figures(sluice_at, *words):
    """What `sluice lab` predicts, without what differs from run to run: how long it took."""
    done = Done(subprocess.run([sluice_at, 'lab', *words, '--json', '-'],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE))
    equal((done.status, done.err), (0, ''))
    result = json.loads(done.out)
    for case in result['cases']:
        del case['wall_s']
    return result


def equal(found, wanted):
    if found != wanted:
        raise AssertionError('found  %r\nwanted %r' % (found, wanted))


def contains(text, part):
    if part not in text:
        raise AssertionError('no %r in\n%s' % (part, text))


def refused(words, complaint, status=2):
    """The program must say exactly this one line on stderr, nothing on stdout."""
    done = sluice(*words)
    equal(done.err, complaint + '\n')
    equal(done.out, '')
    equal(done.status, status)


def run_case(function, scratch):
    """'' if it passed; else what went wrong."""
    os.makedirs(scratch)
    os.chdir(scratch)
    try:
        function()
    except AssertionError as error:
        return str(error) + '\n' + traceback.format_exc()
    finally:
        os.chdir('/')
    return ''


def main(names):
    cases = [f for name, f in names.items() if name.startswith('test_')]
    scratch = tempfile.mkdtemp(prefix='sluice-cli-')
    failed = False
    print('1..%d' % len(cases))
    for number, function in enumerate(cases, 1):
        title = function.__name__[len('test_'):]
        try:
            trouble = run_case(function, os.path.join(scratch, title))
        except Skip as reason:
            print('# skip: %s\nok %d # SKIP %s' % (reason, number, title))
            continue
        failed |= bool(trouble)
        print('%s %d - %s' % ('not ok' if trouble else 'ok', number, title))
        for line in trouble.splitlines():
            print('# ' + line)
    shutil.rmtree(scratch)
    sys.exit(1 if failed else 0)
