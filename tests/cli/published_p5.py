# SPDX-License-Identifier: MIT
"""Tenants that share an inode (P5): what was published comes out, and ours does better."""
import json
import os

import program
from program import ROOT, equal, sluice


def run(name):
    done = sluice('lab', os.path.join(ROOT, 'experiments', 'p5-%s.ini' % name), '--quiet', '--check',
                  '--json', '-')
    equal((done.status, done.err), (0, ''))
    return {c['case']: c for c in json.loads(done.out)['cases']}


def changes(name):
    """What the tables of comparisons print, by their first words: the last column, ours."""
    done = sluice('lab', os.path.join(ROOT, 'experiments', 'p5-%s.ini' % name), '--quiet')
    equal(done.status, 0)
    rows = done.out.split('\ncomparison ')[1].splitlines()[1:]
    ours = {}
    for row in rows:
        words = row.split('  ')
        if row.split()[-1].startswith('targeted'):
            ours[words[0].strip()] = float(row.split()[-3])
    return ours


def test_overwrites_beside_a_neighbour():
    run('overwrite')
    ours = changes('overwrite')
    # at least as good as skip-shared, within 5 %
    assert ours["pages of hot's, against skip-shared"] < 5, ours


def test_metadata():
    run('metadata')
    assert changes('metadata')['time of the work, with the sync'] < 5


def test_halves_of_one_file():
    run('halves')
    assert abs(changes('halves')["writes of the other, against the owner's"]) < 20


def test_a_noisy_tenant():
    run('noisy')
    assert abs(changes('noisy')["the quiet one's p99, against alone"]) < 10


program.main(globals())
