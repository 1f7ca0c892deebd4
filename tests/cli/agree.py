# SPDX-License-Identifier: MIT
"""The same experiment and seed give the same figures whatever compiled the program.

    agree.py PROGRAM PROGRAM...     each but the first is one case
"""
import os
import shutil
import sys
import tempfile

from program import equal, figures, sixteenth_of_p2


def main():
    programs = [os.path.abspath(path) for path in sys.argv[1:]]
    scratch = tempfile.mkdtemp(prefix='sluice-agree-')
    failed = False
    os.chdir(scratch)
    print('1..%d' % (len(programs) - 1))
    wanted = figures(programs[0], sixteenth_of_p2())
    for number, path in enumerate(programs[1:], 1):
        trouble = ''
        try:
            equal(figures(path, 'p2.ini'), wanted)
        except AssertionError as error:
            trouble = str(error)
        failed |= bool(trouble)
        print('%s %d - %s' % ('not ok' if trouble else 'ok', number,
                              os.path.basename(os.path.dirname(path))))
        for line in trouble.splitlines():
            print('# ' + line)
    os.chdir('/')
    shutil.rmtree(scratch)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
