# SPDX-License-Identifier: MIT
"""Help, and what the program answers to words that make no sense."""
import json

import program
from program import contains, equal, refused, sluice

COMMANDS = ['lab', 'fio', 'sweep', 'run', 'device', 'mount', 'stat', 'sync',
            'limits', 'calibrate', 'torture', 'policies', 'help', 'version']


def test_help_lists_every_command():
    done = sluice('help')
    equal(done.status, 0)
    equal(done.err, '')
    for command in COMMANDS:
        contains(done.out, '\n  %-10s ' % command)
    equal(sluice('--help').out, done.out)
    equal(sluice('-h').out, done.out)


def test_every_command_explains_itself_with_examples():
    for command in COMMANDS:
        done = sluice(command, '--help')
        equal((done.status, done.err), (0, ''))
        contains(done.out, 'Usage: sluice ' + command)
        contains(done.out, '\nExamples:\n  sluice ' + command)
        equal(sluice('help', command).out, done.out)
        equal(sluice(command, '-h').out, done.out)


def test_version():
    done = sluice('version')
    equal((done.status, done.err), (0, ''))
    contains(done.out, 'sluice 0.')
    equal(sluice('--version').out, done.out)


def test_no_command():
    refused([], 'sluice: no command given; "sluice help" lists them')


def test_unknown_commands():
    refused(['polices'], 'sluice: unknown command "polices"; did you mean "policies"?')
    refused(['frobnicate'], 'sluice: unknown command "frobnicate"')
    refused(['help', 'lob'], 'sluice: unknown command "lob"; did you mean "lab"?')
    refused(['help', 'lab', 'lab'], 'sluice help: one command at a time, not "lab" too')
    refused(['--seed'], 'sluice: unknown option "--seed"; only --help and --version come before '
                        'a command')


def test_unknown_options():
    refused(['lab', '--sede', '3'], 'sluice lab: unknown option "--sede"; did you mean "--seed"?')
    refused(['lab', '--sede=3'], 'sluice lab: unknown option "--sede"; did you mean "--seed"?')
    refused(['lab', '-x'], 'sluice lab: unknown option "-x"')
    refused(['policies', '--jason'],
            'sluice policies: unknown option "--jason"; did you mean "--json"?')
    refused(['version', '--all'], 'sluice version: unknown option "--all"')
    refused(['version', 'now'], 'sluice version: takes no arguments, not "now"')


def test_wrong_values():
    refused(['lab', '--seed'], 'sluice lab: option "--seed" needs a value: N')
    refused(['lab', '-c'], 'sluice lab: option "--case" needs a value: CASE')
    refused(['lab', '--quiet=yes'], 'sluice lab: option "--quiet" takes no value')
    refused(['lab', '--seed', '-1'],
            'sluice lab: --seed cannot be "-1", only 0 to 9223372036854775807')
    refused(['lab', '--jobs=0'], 'sluice lab: --jobs cannot be "0", only 1 to 1024')
    refused(['lab', '--json='], 'sluice lab: --json needs the name of a file, or "-"')


def test_policies_are_listed():
    done = sluice('policies')
    equal((done.status, done.err), (0, ''))
    names = [line.split()[0] for line in done.out.splitlines()]
    equal(names, ['linux-6.1', 'linux-6.6', 'linux-6.12', 'linux-6.18', 'linux-7.4', 'sluice'])
    equal([p['name'] for p in json.loads(sluice('policies', '--json').out)], names)


def test_one_policy_is_explained():
    done = sluice('policies', 'linux-6.1')
    equal((done.status, done.err), (0, ''))
    contains(done.out, 'linux-6.1\n')
    contains(done.out, '\nwrite_order  zero        a write makes 4 KiB folios')
    choices = json.loads(sluice('policies', '--json', 'linux-6.1').out)['choices']
    found = {c['key']: c['value'] for c in choices}
    equal(found['write_order'], 'zero')
    equal(found['writeout'], 'folio')
    equal(len(done.out.splitlines()), 2 + len(choices))
    for choice in choices:
        contains(choice['values'].split('|'), choice['value'])


def test_unknown_policies():
    refused(['policies', 'sluce'],
            'sluice policies: unknown policy "sluce"; did you mean "sluice"?')
    refused(['policies', 'sluice', 'linux-6.1'],
            'sluice policies: one policy at a time, not "linux-6.1" too')


def test_output_that_cannot_be_written_is_an_error():
    with open('/dev/full', 'w') as full:
        import subprocess
        done = subprocess.run([program.SLUICE, 'policies'], stdout=full, stderr=subprocess.PIPE)
    equal(done.stderr.decode(), 'sluice policies: standard output cannot be written\n')
    equal(done.returncode, 1)



def test_no_file_is_written_over_what_is_read():
    for words in (['lab', 'e.ini', '--json', 'e.ini'], ['lab', 'e.ini', '--report', './e.ini'],
                  ['sweep', 'e.ini', '-s', 'device.iops=1,2', '--json', 'e.ini'],
                  ['fio', 'e.ini', '-o', 'e.ini']):
        with open('e.ini', 'w') as f:
            f.write('[job]\n')
        done = sluice(*words)
        equal((done.status, done.out), (2, ''))
        contains(done.err, 'must not be overwritten')
        equal(open('e.ini').read(), '[job]\n')
    done = sluice('lab', 'e.ini', '--json', 'same', '--report', 'same')
    equal((done.status, 'must not be overwritten' in done.err), (2, True))


program.main(globals())
