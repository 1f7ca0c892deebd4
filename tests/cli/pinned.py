#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A cache held by dirty pages goes on at full speed, and is what its experiment says."""
import json
import os

import program
from program import ROOT, equal, sluice

FILE = os.path.join(ROOT, 'experiments', 'pinned.ini')
CASES = ['sluice', 'sluice-100', 'sluice-10']
GIB = 1 << 30

done = sluice('lab', FILE, *(w for c in CASES for w in ('--case', c)), '--check', '--json', '-')


def cases():
    return {c['case']: c['predicted'] for c in json.loads(done.out)['cases']}


def test_the_check_passes():
    equal((done.status, done.err), (0, ''))


def test_the_ledgers_part():
    """All of memory is held by next to nothing; what may be held is bounded by the policy."""
    for name, share in (('sluice', 0.5), ('sluice-100', 1), ('sluice-10', 0.1)):
        case = cases()[name]
        assert case['max_debt_bytes'] < 0.1 * 4 * GIB, case
        assert case['max_pinned_bytes'] <= share * 4 * GIB + case['max_debt_bytes'], case
        assert case['max_pinned_bytes'] >= 0.95 * share * 4 * GIB, case


def test_nobody_waits():
    for case in cases().values():
        equal(case['throttle_sleep_s'], 0)
        equal((case['read_iops'], case['write_iops']), (1600, 264))
        assert case['read_max_ms'] < 1.5 and case['write_max_ms'] < 1, case


def test_the_device_does_what_it_must():
    """What is read is read once: 200 MiB for a minute. What is dirty goes at the age of 30 s."""
    for case in cases().values():
        read = 200 * 60 << 20
        assert read <= case['device_read_bytes'] <= read * 1.01, case
        assert 290e6 < case['device_write_bytes'] < 380e6, case


program.main(globals())
