# SPDX-License-Identifier: MIT
"""sluice torture: two thousand runs find nothing; the same seed is the same run."""
import os

import program
from program import contains, equal, refused, sluice

RUNS = 1000000 if 'SLUICE_SOAK' in os.environ else 2000


def test_nothing_is_wrong():
    done = sluice('torture', '--runs', str(RUNS), '--steps', '300', '--jobs', '2')
    equal((done.status, done.err), (0, ''))
    equal(done.out, '%d runs of 300 operations from seed 1: nothing is wrong\n' % RUNS)


def test_a_seed_is_a_run():
    first = sluice('torture', '--seed', '5', '--trace')
    equal((first.status, first.err), (0, ''))
    assert len(first.out.splitlines()) > 100
    equal(sluice('torture', '--seed', '5', '--trace').out, first.out)
    assert sluice('torture', '--seed', '6', '--trace').out != first.out


def test_operations_can_be_left_out():
    done = sluice('torture', '--seed', '5', '--trace', '--keep', '3,7-9')
    equal(done.status, 0)
    lines = done.out.splitlines()
    equal(sorted(int(line.split(':')[0]) for line in lines[:-1]), [3, 7, 8, 9])
    equal(lines[-1], '1 runs of 150 operations from seed 5: nothing is wrong')


def test_words_that_make_no_sense():
    refused(['torture', '--faults', 'eio,fire'],
            'sluice torture: --faults: no fault is called "fire"; there are eio, full, hang, gone, '
            'slow, memory, power, short, death, all and none')
    refused(['torture', '--keep', '7-3'],
            'sluice torture: --keep wants numbers below 150, as 3,7-9, not "7-3"')
    refused(['torture', '--keep', '150'],
            'sluice torture: --keep wants numbers below 150, as 3,7-9, not "150"')
    refused(['torture', 'much'], 'sluice torture: takes no arguments, not "much"')


program.main(globals())
