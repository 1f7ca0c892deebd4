# SPDX-License-Identifier: MIT
"""The manual pages say what the program does: every option, key and figure, and examples
that run."""
import glob
import json
import os
import re
import shutil
import subprocess

import program
from program import ROOT, Skip, equal, sluice

PAGES = os.path.join(ROOT, 'docs', 'man')


def page(name):
    with open(os.path.join(PAGES, name)) as f:
        return f.read()


def source(name):
    with open(os.path.join(ROOT, 'src', name)) as f:
        return f.read()


def missing(words, text):
    return [w for w in words if not re.search(r'(?<![\w.])%s(?!\w)' % re.escape(w), text)]


def test_pages_are_well_formed():
    if not shutil.which('mandoc'):
        raise Skip('mandoc is not installed')
    found = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning',
                            *sorted(glob.glob(PAGES + '/*'))],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    equal(found.stdout.decode(), '')


def test_every_command_has_its_page_or_a_place_in_the_first():
    names = re.findall(r'^  (\w+) ', sluice('help').out, re.MULTILINE)
    assert len(names) >= 4, names
    equal(missing(['Cm ' + n for n in names], page('sluice.1')), [])


def test_every_option_is_explained():
    for command in ('lab', 'fio', 'sweep', 'run', 'device', 'mount', 'stat', 'sync', 'limits',
                    'calibrate', 'torture', 'policies'):
        options = re.findall(r'--([\w-]+)', sluice(command, '--help').out.split('Options:')[1]
                             .split('Examples:')[0])
        assert 'help' in options
        options.remove('help')
        equal(missing(['Fl Fl ' + o for o in options], page('sluice-%s.1' % command)), [])


def test_every_figure_is_explained():
    keys = re.findall(r'X\([A-Z0-9_]+, (\w+), [A-Z]+,', source('lab/metric.h'))
    assert len(keys) >= 20, keys
    equal(missing(keys, page('sluice-lab.1')), [])


def test_every_option_of_fio_with_an_effect_is_listed():
    table = source('job/options_table.c').split('/* --- without effect')[0]
    names = re.findall(r'^\t(?:OPTION|OWN)\("([\w-]+)"', table, re.MULTILINE)
    assert len(names) > 90, names
    text = page('sluice-fio.1').split('.Ss Options with an effect')[1].split('.Ss ')[0]
    equal(sorted(re.findall(r'^\.Ic (\w+)', text, re.MULTILINE)), sorted(names))


def test_every_choice_of_a_policy_is_explained():
    text = page('sluice-policies.1')
    for choice in json.loads(sluice('policies', '--json', 'sluice').out)['choices']:
        line = re.search(r'^\.It Va %s No = (.*)$' % choice['key'], text, re.MULTILINE)
        assert line, choice['key']
        if choice['key'] != 'max_order':
            equal(re.sub(r'^Cm ', '', line.group(1)).split(' | '), choice['values'].split('|'))


def test_every_setting_is_explained():
    """A key that does not exist is answered with those that do."""
    text = page('sluice-experiment.5')
    for section in ('machine', 'cpu', 'vm'):
        done = sluice('lab', program.SMALL, '-s', section + '.zzzzzzzzzzzzzzzz=1')
        equal(done.status, 2)
        keys = done.err.split('which takes ')[1].strip().split(', ')
        assert len(keys) >= 4, keys
        equal(missing(keys, text), [])
    keys = re.findall(r'DEVICE\("(\w+)"', source('lab/setup.c'))
    assert len(keys) >= 10, keys
    equal(missing(keys, text), [])


def test_the_example_of_an_experiment_runs():
    example = re.search(r'^\.Bd -literal[^\n]*\n(\[experiment\].*?)^\.Ed', page(
        'sluice-experiment.5'), re.MULTILINE | re.DOTALL).group(1)
    with open('tiny.ini', 'w') as f:
        f.write(example)
    with open('write.fio', 'w') as f:
        f.write('[write]\nrw=randwrite\nbs=4k\nsize=256m\nfilename=f\ninvalidate=0\n'
                'time_based\nruntime=2\nrate_iops=500\n')
    done = sluice('lab', 'tiny.ini')
    equal((done.status, done.err), (0, ''))
    equal([line.split()[0] for line in done.out.splitlines()[-2:]], ['large', 'small'])


program.main(globals())
