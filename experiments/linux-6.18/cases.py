#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes an experiment of a list of runs, to predict them before or after they are measured.

    cases.py CASES.json FOLDER [MEASURED]
    sluice lab FOLDER/cases.ini [--seeds 5] [--check]

CASES.json: {"defaults": {...}, "cases": {NAME: {what differs}}}, with the keys
    fs, files, file_mb (MiB each), iops, mbps, lat_us, bg_mb and dirty_mb (10^6 bytes), read_ahead_kb,
    load (further fio options of the reading before the run, or null: no reading),
    job (the measured fio job, in which {dir} and {files} stand for the folder and the files).
The runs are made in that order on one device: each begins with what the two before it left of the
kernel's estimates (docs/linux-behaviour.md). MEASURED is a folder of NAME.json, what came out, if it
is known: they become references.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINE = os.path.join(HERE, '..', '..', 'machines', 'slow-file.ini')
KEYS = {'fs', 'files', 'file_mb', 'iops', 'mbps', 'lat_us', 'bg_mb', 'dirty_mb', 'read_ahead_kb',
        'load', 'job'}

PREAMBLE = '''# %(count)d runs on a device of known speed, made by experiments/linux-6.18/cases.py.
[experiment]
name = cases
title = Runs on a device of known speed
source = %(source)s
machine = %(machine)s
policy = linux-6.18

[vm]
dirty_background_bytes = 1560000000
dirty_bytes = 3120000000

[phase lay-out]
job = lay-out.fio
device.iops = 1000000
device.mbps = 2000
device.latency_us = 20

[phase history]
job = history.fio
sync_after = yes
drop_caches_after = yes

[phase load]
job = load.fio

[phase measured]
job = measured.fio
measure = yes
linger = 850ms
'''

TOLERANCE = '''
[tolerance]
write_iops = 5 %
max_dirty_bytes = 10 %
pages_charged = 8 %
device_writes = 10 %
throttle_sleep_s = 50 %
write_p99_ms = factor 2 above 1
'''


def put(folder, name, text):
    with open(os.path.join(folder, name), 'w') as f:
        f.write(text)
    return name


def lay_out(c):
    return ('[lay-out]\nfilename_format=f.$jobnum\nnumjobs=%d\nfilesize=%dm\nrw=write\nbs=1m\n'
            'direct=1\nioengine=libaio\niodepth=4\n' % (c['files'], c['file_mb']))


def load(c):
    more = ''.join(option.lstrip('-') + '\n' for option in c['load'])
    return ('[load]\nfilename_format=f.$jobnum\nnumjobs=%d\nfilesize=%dm\nrw=read\nbs=1m\n'
            'ioengine=psync\n%s' % (c['files'], c['file_mb'], more))


def measured_job(c):
    names = ':'.join('f.%d' % i for i in range(c['files']))
    lines = [line for line in c['job'].splitlines() if not line.startswith('directory=')]
    return '\n'.join(lines).replace('{dir}/', '').replace('{files}', names) + '\n'


def case(folder, name, c, before):
    skipped = (['history'] if before else []) + (['load'] if c['load'] is None else [])
    out = ['\n[case %s]' % name,
           'phase.lay-out.job = ' + put(folder, name + '.lay-out.fio', lay_out(c)),
           'phase.measured.job = ' + put(folder, name + '.fio', measured_job(c))]
    if c['load'] is not None:
        out.append('phase.load.job = ' + put(folder, name + '.load.fio', load(c)))
    if skipped:
        out.append('skip_phase = ' + ', '.join(skipped))
    if before:
        out.append('after = ' + ', '.join(before))
    return '\n'.join(out + [
        'machine.fs = %s' % c['fs'],
        'device.iops = %s' % c['iops'],
        'device.mbps = %s' % c['mbps'],
        'device.latency_us = %s' % c['lat_us'],
        'device.read_ahead_kb = %s' % c['read_ahead_kb'],
        'vm.dirty_background_bytes = %d' % (c['bg_mb'] * 1e6),
        'vm.dirty_bytes = %d' % (c['dirty_mb'] * 1e6)]) + '\n'


def reference(path, name):
    """What was measured; latencies only of one job, since percentiles do not add up."""
    with open(path) as f:
        run = json.load(f)
    known = {'source': os.path.basename(path), 'throttle_sleep_s': run['throttle_sleep_s'],
             'max_dirty_bytes': int(run['max_dirty_mb'] * 1e6),
             'pages_charged': run['pages_charged'], 'pages_written': run['pages_written'],
             'device_writes': run['device']['writes'],
             'device_write_bytes': run['device']['wbytes']}
    for way in ('read', 'write'):
        jobs = [job[way] for job in run['jobs'] if way in job]
        if jobs:
            known[way + '_iops'] = sum(job['iops'] for job in jobs)
        if len(jobs) == 1:
            known.update({way + '_p50_ms': jobs[0]['lat_ms']['50'],
                          way + '_p99_ms': jobs[0]['lat_ms']['99'],
                          way + '_max_ms': jobs[0]['max_ms']})
    return '\n[reference %s]\n' % name + ''.join('%s = %s\n' % (k, known[k]) for k in sorted(known))


def whole(defaults, name, differs):
    c = {**defaults, **differs}
    if set(c) != KEYS:
        sys.exit('%s: %s' % (name, ', '.join(
            ['%s is missing' % k for k in sorted(KEYS - set(c))] +
            ['%s is no key' % k for k in sorted(set(c) - KEYS)])))
    return c


def experiment(cases, folder, measured, source):
    runs = {name: whole(cases['defaults'], name, c) for name, c in cases['cases'].items()}
    first = next(iter(runs.values()))
    put(folder, 'history.fio', '[history]\nfilename=history\nsize=64m\nrw=write\nbs=1m\nend_fsync=1\n')
    put(folder, 'lay-out.fio', lay_out(first))
    put(folder, 'load.fio', load({**first, 'load': []}))
    put(folder, 'measured.fio', measured_job(first))
    text = PREAMBLE % {'count': len(runs), 'source': source,
                       'machine': os.path.relpath(MACHINE, folder)}
    references, before = '', []
    for name, c in runs.items():
        text += case(folder, name, c, before[-2:])
        before.append(name)
        path = os.path.join(measured or '', name + '.json')
        if measured and os.path.exists(path):
            references += reference(path, name)
    put(folder, 'cases.ini', text + references + (TOLERANCE if references else ''))


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    with open(sys.argv[1]) as f:
        cases = json.load(f)
    os.makedirs(sys.argv[2], exist_ok=True)
    experiment(cases, sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else None, sys.argv[1])


main()
