# SPDX-License-Identifier: MIT
"""What ./dev answers to a word, sensible or not."""
import os
import re
import subprocess

import program
from program import ROOT, contains, equal


def dev(*words):
    return program.Done(subprocess.run([os.path.join(ROOT, 'dev'), *words],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE))


def test_help_lists_every_command():
    done = dev('help')
    equal((done.status, done.err), (0, ''))
    with open(os.path.join(ROOT, 'dev')) as f:
        commands = re.findall(r'^cmd_(\w+)\(\)', f.read(), re.MULTILINE)
    assert len(commands) >= 7, commands
    for command in commands:
        contains(done.out, '\n  %s ' % command)
    equal(dev().out, done.out)
    equal(dev('--help').out, done.out)


def test_what_makes_no_sense_is_one_line_and_status_2():
    for words, complaint in ((['chekc'], 'unknown command "chekc": see ./dev help'),
                             (['check', 'all'], 'check takes no arguments: see ./dev help'),
                             (['bench', 'a', 'b'], 'usage: ./dev bench [WORD], or mount [PART]...')):
        done = dev(*words)
        equal((done.status, done.out, done.err), (2, '', 'dev: ' + complaint + '\n'))


program.main(globals())
