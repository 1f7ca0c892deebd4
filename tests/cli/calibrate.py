# SPDX-License-Identifier: MIT
"""sluice calibrate: what it prints can be used; how fast this machine is, no test may ask."""
import re

import program
from program import Skip, contains, equal, refused, sluice


def calibrated(*words):
    done = sluice('calibrate', '--rounds', '1', *words)
    if 'is in memory only' in done.err:
        raise Skip('the temporary folder is in memory')
    equal((done.status, done.err), (0, ''))
    return done.out


def test_fresh_memory_counts_for_pages():
    text = calibrated('--fresh', '4M')
    # whether a host has to fetch some of it is the machine's business
    assert re.search(r'^# the mean of touching (the first [0-9.]+[KM]|4M) of memory that nobody used '
                     r'\(half of the rounds: ', text, re.M), text
    assert 'what each further page adds' not in text, text
    for size in '4k', 'much':
        refused(['calibrate', '--fresh', size], 'sluice calibrate: --fresh cannot be "%s", only a '
                'size of at least 1M' % size)


def test_a_cpu_section_is_printed():
    lines = calibrated().splitlines()
    equal(lines[0], '[cpu]')
    keys = [m.group(1) for m in (re.match(r'#? ?(\w+_ns) = \d+$', line) for line in lines) if m]
    equal(keys, ['syscall_ns', 'lookup_ns', 'alloc_ns', 'page_ns', 'fetch_ns', 'copy_ns',
                 'dirty_ns', 'split_ns',
                 'evict_ns', 'activate_ns', 'begin_ns', 'submit_ns', 'complete_ns', 'estimate_ns', 'wake_ns'])
    # what cannot be measured stands there as a comment, with its default
    assert '# split_ns = 3000' in lines and '# complete_ns = 2000' in lines, lines
    assert [line for line in lines if line.startswith('syscall_ns = ')], lines


def test_a_machine_file_is_written_and_can_be_read():
    with open('m.ini', 'w') as f:
        f.write('[machine]\ncpus = 2\nmemory = 64M\n\n[cpu]\nwake_ns = 5\n\n[device]\n'
                'model = rate\n')
    out = calibrated('--write', 'm.ini')
    with open('m.ini') as f:
        text = f.read()
    equal(text, '[machine]\ncpus = 2\nmemory = 64M\n\n[device]\nmodel = rate\n\n' + out)
    equal(sluice('limits', '-m', 'm.ini').status, 0)


def test_mistakes_are_refused():
    refused(['calibrate', 'now'], 'sluice calibrate: takes no arguments, not "now"')
    refused(['calibrate', '--rounds', '0'],
            'sluice calibrate: --rounds cannot be "0", only 1 to 101')
    refused(['calibrate', '--dir', '/nowhere'],
            'sluice calibrate: /nowhere: no file can be made there: No such file or directory', 1)
    refused(['calibrate', '--write', '/nowhere/m.ini'],
            'sluice calibrate: --write /nowhere/m.ini: the folder cannot be written: No such '
            'file or directory')


program.main(globals())
