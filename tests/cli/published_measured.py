#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The runs of a real kernel: the references are what was measured, and the predictions hold."""
import json
import os

import program
from program import ROOT, equal, sluice

FOLDER = os.path.join(ROOT, 'experiments', 'linux-6.18')
# What is known to be off by more than experiments/linux-6.18/measured.ini wants, in the median of
# five seeds: docs/linux-behaviour.md, "What the predictions still miss". One that holds must leave
# this list.
SEEDS = 5
KNOWN = {
    'near-device-rate: write_p99_ms', 'near-device-rate: throttle_sleep_s',
    'fast-10000: max_dirty_bytes', 'dirty-a-lot-then-stop: device_writes',
}


def measured(folder, case):
    with open(os.path.join(FOLDER, folder, case + '.json')) as f:
        run = json.load(f)
    write, device = run['jobs'][0]['write'], run['device']
    return {
        'source': '%s/%s.json' % (folder, case),
        'write_iops': write['iops'],
        'write_p50_ms': write['lat_ms']['50'],
        'write_p99_ms': write['lat_ms']['99'],
        'write_max_ms': write['max_ms'],
        'throttle_sleep_s': run['throttle_sleep_s'],
        'max_dirty_bytes': int(run['max_dirty_mb'] * 1e6),
        'pages_charged': run['pages_charged'],
        'pages_written': run['pages_written'],
        'device_reads': device['reads'],
        'device_writes': device['writes'],
        'device_read_bytes': device['rbytes'],
        'device_write_bytes': device['wbytes'],
    }


def check_references(case, folder):
    found = measured(folder, case['case'])
    equal(case['reference'], {k: found[k] for k in case['reference']})


RUN = {}


def run():
    if not RUN:
        done = sluice('lab', os.path.join(FOLDER, 'measured.ini'), '--quiet', '--check', '--json', '-',
                      '--seeds', str(SEEDS))
        RUN.update(cases=json.loads(done.out)['cases'], complaints=done.err.splitlines())
    return RUN


def test_references_are_what_was_measured():
    for case in run()['cases']:
        check_references(case, 'measured')


def test_every_run_is_predicted():
    names = {name[:-5] for name in os.listdir(os.path.join(FOLDER, 'measured'))}
    equal({c['case'] for c in run()['cases']}, names)


def test_predictions_hold_but_for_the_known_misses():
    missed = {line.split(' is predicted')[0] for line in run()['complaints']}
    equal(missed, KNOWN)


def test_mapped_files_are_predicted():
    done = sluice('lab', os.path.join(FOLDER, 'mapped.ini'), '--quiet', '--check', '--json', '-')
    equal((done.status, done.err), (0, ''))
    for case in json.loads(done.out)['cases']:
        check_references(case, 'mapped')


program.main(globals())
