#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What any prediction must obey, over many kinds of runs on a device of known speed: no more I/Os or
bytes than the device can do, nothing written that was not dirtied, and more of what helps helps. The
runs are made into an experiment by experiments/linux-6.18/cases.py, as runs of a real kernel are."""
import json
import os
import subprocess
import sys

import program
from program import ROOT, contains, equal, sluice

MAKER = os.path.join(ROOT, 'experiments', 'linux-6.18', 'cases.py')
DEFAULTS = {'fs': 'xfs', 'iops': 3000, 'mbps': 700, 'lat_us': 300, 'files': 8, 'file_mb': 128,
            'bg_mb': 200, 'dirty_mb': 400, 'read_ahead_kb': 128, 'load': []}
LINGER = 0.85
SECONDS = 10


def job(**options):
    usual = {'rw': 'randwrite', 'bs': '4k', 'ioengine': 'psync', 'invalidate': 0, 'numjobs': 16,
             'rate_iops': 312, 'time_based': 1, 'runtime': SECONDS, 'group_reporting': 1}
    lines = {k: v for k, v in {**usual, **options}.items() if v is not None}
    return '[j]\ndirectory={dir}\nfilename={files}\n' + ''.join('%s=%s\n' % o for o in lines.items())


STREAM = {'rw': 'write', 'bs': '1m', 'numjobs': 4, 'rate_iops': None}
FREE = {'rate_iops': None, 'numjobs': 4}
CASES = {
    **{'iops-%d' % n: {'iops': n} for n in (300, 1000, 3000, 10000)},
    **{'latency-%d' % n: {'lat_us': n, 'load': None, 'job': job(sync=1, **FREE)}
       for n in (50, 1000, 10000)},
    **{'mbps-%d' % n: {'mbps': n, 'load': None,
                       'job': job(end_fsync=1, **{**STREAM, 'time_based': None, 'runtime': None})}
       for n in (20, 100, 700)},
    **{'limit-%d' % n: {'bg_mb': n / 2, 'dirty_mb': n} for n in (100, 400, 1600)},
    **{'block-%s' % n: {'job': job(bs=n, **FREE)} for n in ('4k', '64k', '1m')},
    **{'fsync-%d' % n: {'job': job(fsync=n, **FREE)} for n in (2, 64)},
    **{'jobs-%d' % n: {'job': job(numjobs=n, rate_iops=None)} for n in (1, 16)},
    **{'rate-%d' % n: {'job': job(rate_iops=n)} for n in (150, 187, 200)},
    **{'cap-%s' % n: {'read_ahead_kb': n} for n in (128, 4096)},
    'single-pages': {'load': ['--fadvise_hint=random']},
    'nothing-cached': {'load': None},
    'ext4': {'fs': 'ext4'},
    'ext4-stream': {'fs': 'ext4', 'load': None, 'job': job(**STREAM)},
    'mixed': {'load': None, 'job': job(rw='randrw', **FREE)},
    'mixed-cached': {'job': job(rw='randrw', **FREE)},
    'readers': {'load': None, 'job': job() + job(rw='randread', new_group=1, **FREE)},
    'direct': {'job': job(direct=1, **FREE)},
    'mapped': {'job': job(ioengine='mmap', rate_iops=100)},
    'deep': {'job': job(ioengine='io_uring', iodepth=16, **FREE)},
    'dontcache': {'load': None, 'job': job(uncached=1, **FREE)},
    'create': {'load': None, 'job': '[c]\ndirectory={dir}\nfilename_format=n.$jobnum\nfilesize=100m\n'
                                    'rw=write\nbs=128k\nnumjobs=4\nend_fsync=1\n'},
}
RUN = {}


def write(path, text):
    with open(path, 'w') as f:
        f.write(text)


def make(cases, *more):
    write('cases.json', json.dumps(cases))
    return subprocess.run([sys.executable, MAKER, 'cases.json', '.', *more], stderr=subprocess.PIPE,
                          text=True)


def predicted():
    if not RUN:
        cases = {'defaults': {**DEFAULTS, 'job': job()}, 'cases': CASES}
        equal((make(cases).stderr, make(cases).returncode), ('', 0))
        with open('cases.ini') as f:  # each run begins with a device that knows nothing but history
            lines = [line.replace('history, ', '') for line in f
                     if not line.startswith('after =') and line != 'skip_phase = history\n']
        write('cases.ini', ''.join(lines))
        done = sluice('lab', 'cases.ini', '-q', '--json', '-')
        equal(done.status, 0)
        RUN.update({c['case']: c['predicted'] for c in json.loads(done.out)['cases']})
        equal(sorted(RUN), sorted(CASES))
    return RUN


def ends(case):
    return predicted()[case]['ended_s'] + LINGER


def test_no_device_does_more_than_it_can():
    for case, p in predicted().items():
        c = {**DEFAULTS, **CASES[case]}
        ios = p['device_reads'] + p['device_writes']
        assert ios <= c['iops'] * ends(case) * 1.01 + 1, (case, ios)
        moved = p['device_read_bytes'] + p['device_write_bytes']
        assert moved <= c['mbps'] * 1e6 * ends(case) * 1.01 + 2 ** 20, (case, moved)
        assert p['device_busy_percent'] <= 100.01, case
        # requests are of 256 KiB at most, and of whole pages but for the log's
        assert p['device_write_bytes'] <= p['device_writes'] * 262144, case


def test_all_runs_do_something_and_latencies_are_in_order():
    for case, p in predicted().items():
        assert p['write_iops'] > 0 and p['device_writes'] + p['max_dirty_bytes'] > 0, case
        assert p['write_p50_ms'] <= p['write_p99_ms'] <= p['write_max_ms'], case
        assert p['write_max_ms'] < 1500, (case, p['write_max_ms'])


def test_nothing_is_written_that_was_not_charged():
    for case, p in predicted().items():
        assert p['pages_written'] <= p['pages_charged'], case
        assert p['max_dirty_bytes'] >= p['max_debt_bytes'] or case == 'direct', case
        # the limit is not passed by more than what writers may do between two looks of the throttle
        limit = {**DEFAULTS, **CASES[case]}['dirty_mb'] * 1e6
        assert p['max_dirty_bytes'] <= limit * 1.05, (case, p['max_dirty_bytes'])


def test_no_more_is_done_than_asked_for():
    for case, p in predicted().items():
        if 'job' not in CASES[case]:
            assert p['write_iops'] <= 16 * 312 * 1.01, case
    for rate in (150, 187, 200):
        assert predicted()['rate-%d' % rate]['write_iops'] <= 16 * rate * 1.01
    assert abs(predicted()['rate-150']['write_iops'] - 16 * 150) < 20
    equal(predicted()['rate-150']['throttle_sleep_s'], 0)


def test_what_is_written_past_the_cache_comes_at_the_devices_speed():
    for case in ('direct', 'latency-50', 'latency-1000'):
        c = {**DEFAULTS, **CASES[case]}
        at_most = min(c['iops'], 4 / (c['lat_us'] / 1e6))
        assert 0.8 * at_most < predicted()[case]['write_iops'] <= at_most * 1.01, case
    equal(predicted()['direct']['pages_charged'], 0)


def rises(figure, *cases):
    values = [predicted()[case][figure] for case in cases]
    for less, more in zip(values, values[1:]):
        assert less <= more * 1.02, (figure, cases, values)
    assert values[0] < values[-1], (figure, cases, values)


def test_more_of_what_helps_helps():
    rises('write_iops', 'iops-300', 'iops-1000', 'iops-3000', 'iops-10000')
    rises('throttle_sleep_s', 'iops-10000', 'iops-3000', 'iops-300')
    rises('write_p99_ms', 'iops-10000', 'iops-3000', 'iops-1000', 'iops-300')
    rises('write_iops', 'latency-10000', 'latency-1000', 'latency-50')
    rises('write_iops', 'limit-100', 'limit-400', 'limit-1600')
    rises('max_dirty_bytes', 'limit-100', 'limit-400', 'limit-1600')
    rises('ended_s', 'mbps-700', 'mbps-100', 'mbps-20')
    rises('write_iops', 'rate-150', 'rate-187', 'rate-200')
    rises('write_iops', 'cap-4096', 'cap-128', 'single-pages', 'nothing-cached')
    rises('pages_charged', 'nothing-cached', 'iops-3000', 'cap-4096')
    rises('write_mib_s', 'block-4k', 'block-64k', 'block-1m')


def test_reads_of_what_is_not_cached_are_read():
    p = predicted()['mixed']
    hits = 100 * (1 - p['device_read_bytes'] / (p['read_iops'] * p['ended_s'] * 4096))
    assert abs(p['read_hit_percent'] - hits) < 10, (p['read_hit_percent'], hits)
    assert p['read_hit_percent'] < 50
    assert predicted()['mixed-cached']['read_hit_percent'] > 95


def test_known_results_become_references():
    measured = {'jobs': [{'write': {'iops': 5.5, 'lat_ms': {'50': 0.5, '99': 2.5}, 'max_ms': 9}}],
                'throttle_sleep_s': 0, 'max_dirty_mb': 1.5, 'pages_charged': 3, 'pages_written': 2,
                'device': {'writes': 7, 'wbytes': 28672}}
    write('first.json', json.dumps(measured))
    cases = {'defaults': {**DEFAULTS, 'job': job()}, 'cases': {'first': {}, 'second': {'load': None},
                                                               'third': {}, 'fourth': {}}}
    equal(make(cases, '.').returncode, 0)
    with open('cases.ini') as f:
        text = f.read()
    for line in ('[reference first]', 'write_iops = 5.5', 'write_p99_ms = 2.5',
                 'max_dirty_bytes = 1500000', 'device_writes = 7', 'after = first\n',
                 'after = first, second', 'after = second, third', 'skip_phase = history, load'):
        contains(text, line)


def test_a_case_with_a_mistake_is_refused():
    done = make({'defaults': {**DEFAULTS, 'job': job()}, 'cases': {'first': {'iop': 5}}})
    equal((done.returncode, done.stderr), (1, 'first: iop is no key\n'))
    done = make({'defaults': DEFAULTS, 'cases': {'first': {}}})
    equal((done.returncode, done.stderr), (1, 'first: job is missing\n'))


program.main(globals())
