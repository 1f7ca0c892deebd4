# SPDX-License-Identifier: MIT
"""DONTCACHE on one disk (P4): the rows that were not used for the device's constants."""
import json
import os

import program
from program import ROOT, equal, sluice

# What is known to be off by more than experiments/p4-local.ini allows. One that holds must leave this
# list.
KNOWN = {'noisy-inline: read_mib_s', 'noisy-kick: read_mib_s'}
RUN = {}


def run():
    if not RUN:
        done = sluice('lab', os.path.join(ROOT, 'experiments', 'p4-local.ini'), '--quiet', '--check',
                      '--json', '-')
        RUN.update(cases={c['case']: c['predicted'] for c in json.loads(done.out)['cases']},
                   complaints=done.err.splitlines())
    return RUN


def test_predictions_hold_but_for_the_known_misses():
    equal({line.split(' is predicted')[0] for line in run()['complaints'] if ' is predicted' in line},
          KNOWN)


def test_ours_holds_little_and_is_on_the_disk():
    cases = run()['cases']
    for name, case in cases.items():
        if name.endswith('-own'):
            assert case['max_dontcache_bytes'] < 512 << 20, (name, case['max_dontcache_bytes'])
    for kind in ('seq', 'several', 'noisy'):
        own, inline, kick = (cases[kind + how] for how in ('-own', '-inline', '-kick'))
        assert own['write_mib_s'] >= inline['write_mib_s'], own
        # what kick has over it is in memory when it ends
        assert own['write_mib_s'] > .95 * kick['device_write_bytes'] / kick['ended_s'] / (1 << 20), own
        assert own['write_p999_ms'] <= kick['write_p999_ms'], own


def test_ours_lets_readers_read():
    cases = run()['cases']
    own, inline, kick = (cases['crowd-' + how] for how in ('own', 'inline', 'kick'))
    assert own['read_mib_s'] > .9 * inline['read_mib_s'], own
    assert own['read_mib_s'] > 1.5 * kick['read_mib_s'], own
    # 0.95 is wanted; it is what readers get before them
    assert own['write_mib_s'] > .85 * kick['write_mib_s'], own
    own, kick = (cases['noisy-' + how] for how in ('own', 'kick'))
    assert own['read_mib_s'] > 2 * kick['read_mib_s'], own


program.main(globals())
