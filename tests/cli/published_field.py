# SPDX-License-Identifier: MIT
"""What people reported from the field: each experiment in experiments/field/ gives what was
reported, and says so by itself (--check)."""
import json
import os
import re

import program
from program import ROOT, equal, sluice

FIELD = os.path.join(ROOT, 'experiments', 'field')
# Cases that have a reference, and so must be held against it.
REFERENCES = {
    'strict-limit': {'at-3072', 'at-3319'},
    'strict-fuse': {'before-5.14', 'since-6.14'},
    'whole-folio': {'before-6.6', 'since-6.6'},
    'slow-and-fast': {'alone', 'together', 'at-once'},
    'fsync-each-second': {'limit-10m'},
    'usb-stick': {'as-it-comes'},
}


def run(name, *words):
    """The predictions of one experiment by case; its check must pass."""
    done = sluice('lab', os.path.join(FIELD, name + '.ini'), '--quiet', '--check', '--json', '-', *words)
    equal((done.status, done.err), (0, ''))
    cases = {c['case']: c for c in json.loads(done.out)['cases']}
    equal({c for c in cases if 'reference' in cases[c]}, REFERENCES[name])
    return cases


def figures(cases, key):
    return {name: case['predicted'][key] for name, case in cases.items()}


def test_every_experiment_is_here():
    names = {name for name in os.listdir(FIELD) if name.endswith('.ini')}
    equal({name[:-4] for name in names if not name.endswith('-machine.ini')}, set(REFERENCES))


def test_each_tells_its_source_and_what_it_teaches():
    for name in REFERENCES:
        with open(os.path.join(FIELD, name + '.ini')) as f:
            head = f.read().split('\n[')[0]
        assert re.search('^# Source: ', head, re.M) and re.search('^# Teaches: ', head, re.M), name


def test_a_strict_limit_allows_exactly_what_the_arithmetic_says():
    cases = run('strict-limit')
    equal(figures(cases, 'first_pace_kb'), {'at-3072': 102400.0, 'at-3319': 100900.0})
    equal(figures(cases, 'first_pace_dirty_bytes'), {'at-3072': 3072 * 4096, 'at-3319': 3319 * 4096})


def test_a_share_of_nothing_makes_a_fuse_writer_crawl():
    rate = {name: iops * 2 ** 20 / 1000 for name, iops in figures(run('strict-fuse'), 'write_iops').items()}
    # kB/s: 146 by dd's own word, 120 by the pauses in the trace
    assert 115 < rate['before-5.14'] < 150, rate
    # the flusher that sees the pages cures a hundredth, the share the rest
    assert 10e3 < rate['exact-counters'] < 20e3, rate
    assert rate['before-6.14'] > 480e3 and rate['since-6.14'] > 480e3, rate


def test_one_page_takes_some_thirty_milliseconds():
    with open('strict.txt', 'w') as out:
        out.write(sluice('lab', os.path.join(FIELD, 'strict-fuse.ini'), '-c', 'before-5.14', '-q',
                         '--explain').out)
    with open('strict.txt') as f:
        mean = float(re.search(r'pauses of (\S+) ms on average', f.read()).group(1))
    assert 27 < mean < 35, mean


def test_a_whole_folio_is_sixteen_blocks():
    factor = figures(run('whole-folio'), 'write_factor')
    assert 15.7 < factor['before-6.6'] <= 16, factor
    equal(factor['since-6.6'], 1.0)


def test_a_thousand_writers_on_a_slow_device_do_not_slow_another():
    cases = run('slow-and-fast')
    fast = {name: case['devices'][1] for name, case in cases.items()}
    equal({f['device'] for f in fast.values()}, {'fast'})
    assert fast['together']['device_write_bytes'] >= .9 * fast['alone']['device_write_bytes'], fast
    # and the thousand have the slow one's speed, 10 MB/s for five minutes
    slow = cases['together']['devices'][0]['device_write_bytes']
    assert .95 * 3e9 < slow < 1.05 * 3e9, slow
    # in the first minutes not quite: the thousand have filled all that may be dirty
    at_once = fast['at-once']['device_write_bytes'] / fast['alone']['device_write_bytes']
    assert .9 <= at_once < .99, fast


def test_the_longest_fsync_is_the_background_limit_over_the_speed():
    longest = figures(run('fsync-each-second'), 'fsync_max_ms')
    assert abs(longest['limit-10m'] - 262) <= 26.2, longest
    assert longest['limit-40m'] > 2.5 * longest['limit-10m'], longest


def test_a_copy_to_a_slow_stick_is_done_at_once_and_then_waits():
    cases = run('usb-stick')
    written, ended = figures(cases, 'last_write_s'), figures(cases, 'ended_s')
    assert written['as-it-comes'] < 2 and abs(ended['as-it-comes'] - 412) < 4, (written, ended)
    # with little dirty the copy itself takes that long, and what is left at its end is little
    assert written['little-dirty'] > 400 and ended['little-dirty'] - written['little-dirty'] < 5, cases
    assert cases['little-dirty']['predicted']['max_dirty_bytes'] <= 4 << 20, cases


program.main(globals())
