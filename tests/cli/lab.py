# SPDX-License-Identifier: MIT
"""sluice lab as people use it, on an experiment that takes a second."""
import json
import os
import pty
import re
import subprocess

import program
from program import SMALL, contains, equal, figures, refused, sluice, sixteenth_of_p2

FIGURES = [
    'write_iops', 'write_mib_s', 'write_mb_per_s', 'write_p50_ms', 'write_p99_ms', 'write_p999_ms',
    'write_max_ms', 'throttle_sleep_s',
    'max_dirty_bytes', 'max_debt_bytes', 'max_pinned_bytes', 'pages_charged', 'pages_written',
    'device_reads', 'device_writes', 'device_read_bytes', 'device_write_bytes',
    'device_busy_percent', 'write_factor', 'first_throttle_s', 'background_s', 'last_write_s',
    'ended_s', 'first_pace_kb', 'first_pace_dirty_bytes']


def results(*words):
    return figures(program.SLUICE, SMALL, *words)


def write(path, text):
    with open(path, 'w') as f:
        f.write(text)


def small(change=lambda text: text):
    """A copy of the small experiment, changed, in the current folder."""
    folder = os.path.dirname(SMALL)
    for name in os.listdir(folder):
        if name.startswith('small'):
            with open(os.path.join(folder, name)) as f:
                text = f.read()
            write(name, change(text) if name == 'small.ini' else text)


def test_json_has_the_promised_form():
    done = sluice('lab', SMALL, '--json', '-', '--seed', '7')
    equal((done.status, done.err), (0, ''))
    result = json.loads(done.out)
    equal(list(result), ['experiment', 'seed', 'cases'])
    equal((result['experiment'], result['seed']), ('small', 7))
    equal([(c['case'], c['policy']) for c in result['cases']],
          [('baseline', 'linux-7.4'), ('sluice', 'sluice')])
    baseline, ours = result['cases']
    equal(list(baseline), ['case', 'policy', 'wall_s', 'virtual_s', 'predicted', 'reference'])
    equal(list(ours), ['case', 'policy', 'wall_s', 'virtual_s', 'predicted'])
    for case in result['cases']:
        equal(list(case['predicted']), FIGURES)
    equal(baseline['reference'], {'source': 'arithmetic', 'write_iops': 1000.0,
                                  'background_s': 0.0})


def test_figures_make_sense():
    for case in results()['cases']:
        p = case['predicted']
        # 4 writers ask for 250 a second each, for 5 s, after 96 MiB at 64 MiB/s and back
        assert 0 < p['write_iops'] <= 1001, p
        assert case['virtual_s'] >= 5 + 1.5, case
        assert p['write_p50_ms'] <= p['write_p99_ms'] <= p['write_max_ms'], p
        assert 0 < p['max_debt_bytes'] <= p['max_pinned_bytes'] <= 256 << 20, p
        assert p['max_debt_bytes'] <= p['max_dirty_bytes'], p
        # the device writes 300 a second at most, whole pages, and reads nothing: all is cached
        assert p['device_writes'] <= 1501 + 128, p
        equal(p['device_write_bytes'] % 4096, 0)
        equal(p['device_reads'], 0)
        if case['case'] == 'sluice':  # counts pages; linux-7.4 counts whole folios
            assert p['pages_written'] * 4096 <= p['device_write_bytes'] + (128 << 12), p


def test_the_same_seed_gives_the_same_whatever_runs_beside_it():
    first = results('--jobs', '1')
    equal(results('--jobs', '2'), first)
    equal(results('--jobs', '8'), first)
    alone = results('-c', 'sluice')
    equal(alone['cases'], first['cases'][1:])


def test_p2_at_a_sixteenth_of_its_size_gives_the_same_again():
    experiment = sixteenth_of_p2()
    first = figures(program.SLUICE, experiment, '--jobs', '1')
    equal(figures(program.SLUICE, experiment, '--jobs', '3'), first)
    sleeps = {c['case']: c['predicted']['throttle_sleep_s'] for c in first['cases']}
    equal(len(sleeps), 9)
    # it is still P2: whole folios charged put writers to sleep, single pages do not
    assert sleeps['baseline'] > 10, sleeps
    equal((sleeps['page-accounting'], sleeps['sluice']), (0, 0))
    assert without_seed(figures(program.SLUICE, experiment, '--seed', '2')) != without_seed(first)


def without_seed(result):
    del result['seed']
    return result


def test_another_seed_gives_something_else():
    one, two = (results('--seed', seed) for seed in '12')
    assert one['cases'] != two['cases']


def test_the_table_shows_predictions_beside_references():
    done = sluice('lab', SMALL)
    equal((done.status, done.err), (0, ''))
    lines = done.out.splitlines()
    equal(lines[0], 'small: Random writes into large folios, small')
    contains(lines[2], 'write IOPS')
    equal(lines[3].split()[:5], ['case', 'policy', 'pred', 'publ', 'diff'])
    equal([line.split()[:2] for line in lines[4:]],
          [['baseline', 'linux-7.4'], ['sluice', 'sluice']])
    equal(lines[4].split()[3], '1000')


def test_a_json_file_stands_beside_the_table():
    done = sluice('lab', SMALL, '--json', 'r.json')
    equal((done.status, done.err), (0, ''))
    contains(done.out, 'write IOPS')
    with open('r.json') as f:
        result = json.load(f)
    for case in result['cases']:
        assert case.pop('wall_s') > 0, case
    equal(result, results())
    equal(os.listdir('.'), ['r.json'])


def test_policies_and_settings_can_be_changed():
    result = results('-c', 'baseline', '-p', 'linux-6.1', '-p', 'linux-7.4')
    equal([c['policy'] for c in result['cases']], ['linux-6.1', 'linux-7.4'])
    equal(['reference' in c for c in result['cases']], [False, True])
    result = results('-c', 'baseline', '-s', 'accounting=page', '-s', 'device.iops=900')
    equal(result['cases'][0]['policy'], 'linux-7.4 accounting=page')


def test_check_fails_when_a_prediction_misses():
    equal(sluice('lab', SMALL, '--check').status, 0)
    small(lambda text: text.replace('factor 100', '0.001 %').replace('1000', '123456'))
    done = sluice('lab', 'small.ini', '--check')
    equal(done.status, 1)
    equal(len(done.err.splitlines()), 1)
    contains(done.err, 'baseline: write_iops is predicted ')
    contains(done.err, ', published 123456: ')
    equal(sluice('lab', 'small.ini').status, 0)


def test_explanations_stand_below_the_table():
    done = sluice('lab', SMALL, '--explain')
    equal((done.status, done.err), (0, ''))
    table, _, rest = sluice('lab', SMALL).out, *done.out.partition('\nbaseline, linux-7.4\n')[1:]
    assert done.out.startswith(table), done.out
    lines = rest.split('\nsluice, sluice\n')[0].splitlines()
    equal(lines[0], '  4 writers made 343 writes a second, 1.34M a second, for 5.02 s.')
    result = json.loads(sluice('lab', SMALL, '--explain', '--json', '-').out)
    equal(['  ' + sentence for sentence in result['cases'][0]['explanation']], lines)
    equal([c['decided_by'] for c in result['cases']], ['charge', 'jobs'])


def test_a_trace_has_what_was_decided():
    """Twice the same, as the kernel writes it, in agreement with the figures, which stay."""
    plain = results('-c', 'baseline')
    equal(figures(program.SLUICE, SMALL, '-c', 'baseline', '--trace', 'a.trace'), plain)
    equal(sluice('lab', SMALL, '-c', 'baseline', '--trace', 'b.trace').status, 0)
    with open('a.trace') as a, open('b.trace') as b:
        text = a.read()
        equal(text, b.read())
    lines = text.splitlines()
    equal(lines[0], '# tracer: sluice')
    equal([line for line in lines if line.startswith('# phase')],
          ['# phase create', '# phase load', '# phase write'])
    event = re.compile(r'^ *(.{1,32})-(\d+) +\[(\d{3})\] \.{5} +(\d+\.\d{6}): (\w+): (.*)$')
    events = [event.match(line).groups() for line in lines if not line.startswith('#')]
    times = [float(e[3]) for e in events]
    assert len(times) > 100 and times[0] <= times[-1]
    pauses = [int(re.search(r' pause=(-?\d+)', e[5]).group(1)) for e in events
              if e[4] == 'balance_dirty_pages']
    slept_s = plain['cases'][0]['predicted']['throttle_sleep_s']
    assert slept_s > 0
    equal(round(sum(p for p in pauses if p > 0) / 1000, 3), round(slept_s, 3))
    kinds = {e[4] for e in events}
    for kind in ('global_dirty_state', 'bdi_dirty_ratelimit', 'writeback_start',
                 'writeback_written', 'writeback_single_inode', 'writeback_queue_io'):
        assert kind in kinds, (kind, kinds)


def test_a_trace_is_of_one_case():
    refused(['lab', SMALL, '--trace', 't'], 'sluice lab: --trace is for one case under one policy, '
            'not 2: choose with -c and -p')
    refused(['lab', SMALL, '-c', 'sluice', '--trace', ''],
            'sluice lab: --trace needs the name of a file')
    done = sluice('lab', SMALL, '-c', 'sluice', '--trace', 'no/t')
    equal((done.status, done.out), (2, ''))
    contains(done.err, 'no/t')
    done = sluice('lab', SMALL, '-c', 'sluice', '--trace', 'same', '--json', 'same')
    equal((done.status, done.out), (2, ''))
    equal(os.listdir('.'), [])


def test_progress_is_for_terminals():
    """On a terminal, and not with --quiet, a line is written over and over."""
    for quiet in ([], ['--quiet']):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([program.SLUICE, 'lab', SMALL, *quiet], stderr=theirs,
                                   stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        os.close(theirs)
        process.communicate()
        seen = b''
        try:
            while True:
                more = os.read(ours, 4096)
                seen += more
                if not more:
                    break
        except OSError:
            pass  # the terminal's other end is gone
        os.close(ours)
        equal(process.returncode, 0)
        if quiet:
            equal(seen, b'')
        else:
            contains(seen.decode(), '2 of 2 cases done')
            contains(seen.decode(), 's virtual')


def test_experiments_that_make_no_sense_are_refused():
    refused(['lab'], 'sluice lab: which experiment? "sluice lab --help" says more')
    refused(['lab', 'none.ini'], 'sluice lab: none.ini: No such file or directory')
    refused(['lab', SMALL, SMALL, '--json', '-'],
            'sluice lab: --json is for one experiment, not 2')
    refused(['lab', SMALL, '--seeds', '4'],
            'sluice lab: --seeds must be odd, so that there is a median')
    refused(['lab', SMALL, '--seeds', '3', '--explain'],
            'sluice lab: --report, --explain and --trace are for one seed')
    refused(['lab', SMALL, '-c', 'slice'],
            'sluice lab: %s: there is no case "slice"; did you mean "sluice"?' % SMALL)
    refused(['lab', SMALL, '-p', 'linux'],
            'sluice lab: -p: unknown policy "linux"; "sluice policies" lists them')
    refused(['lab', SMALL, '-s', 'machine.cpus=0'],
            'sluice lab: -s machine.cpus=0: cpus cannot be "0", only 1 to 1024')
    refused(['lab', SMALL, '-s', 'device.size=64M'],
            'sluice lab: %s:22: the files of phase "create" have 96M, but the device holds 64M'
            % SMALL)
    small(lambda text: text.replace('cpus = 4', 'cpus = four'))
    refused(['lab', 'small.ini'], 'sluice lab: small.ini:8: cpus cannot be "four", only 1 to 1024')


def test_what_is_refused_leaves_nothing_behind():
    small(lambda text: text.replace('measure = yes', ''))
    before = sorted(os.listdir('.'))
    refused(['lab', 'small.ini', '--json', 'r.json'],
            'sluice lab: small.ini: no phase is measured: one needs "measure = yes"')
    equal(sorted(os.listdir('.')), before)
    refused(['lab', SMALL, '--json', 'no/r.json'],
            'sluice lab: --json no/r.json: the folder cannot be written: No such file or '
            'directory')
    os.mkdir('r.json')
    refused(['lab', SMALL, '--json', 'r.json'], 'sluice lab: --json r.json: is a folder')


def test_a_case_after_another_begins_with_what_that_has_left():
    """As if its phases stood before: the device's pace is known, and that is not forgotten."""
    small(lambda text: text + '\n[case again]\nafter = baseline\n')
    cases = json.loads(sluice('lab', 'small.ini', '--json', '-').out)['cases']
    first, _, again = (c['predicted'] for c in cases)
    before = ('[phase a]\njob = small-create.fio\nsync_after = yes\ndrop_caches_after = yes\n'
              '[phase b]\njob = small-load.fio\n'
              '[phase c]\njob = small-write.fio\nsync_after = yes\ndrop_caches_after = yes\n')
    small(lambda text: text.replace('[phase create]', before + '[phase create]'))
    spelt = json.loads(sluice('lab', 'small.ini', '-c', 'baseline', '--json', '-').out)['cases']
    equal(again, spelt[0]['predicted'])
    assert again['throttle_sleep_s'] != first['throttle_sleep_s'], (again, first)


def test_a_failed_job_is_named_and_the_others_run():
    write('good.fio', '[writer]\nrw=write\nsize=1m\nfilename=f\n')
    write('e.ini', '[experiment]\nname = e\n[machine]\ncpus = 2\nmemory = 64M\n'
                   '[device]\nmodel = memory\n[phase p]\nline = [reader]\nline = rw=read\n'
                   'line = filename=nofile\nmeasure = yes\n[case bad]\n'
                   '[case good]\nphase.p.job = good.fio\n')
    why = 'case bad: phase p, job reader (e.ini:9): job reader needs a size, since nofile does not exist'
    done = sluice('lab', 'e.ini', '--json', 'r.json')
    equal(done.status, 1)
    equal(done.err, 'sluice lab: %s\n' % why)
    rows = [line.split() for line in done.out.splitlines()[-2:]]
    equal([row[0] for row in rows], ['bad', 'good'])
    equal(set(rows[0][2:]), {'-'})
    assert '-' not in rows[1], rows
    with open('r.json') as f:
        bad, good = json.load(f)['cases']
    equal((bad['error'], 'predicted' in bad), (why, False))
    equal(('error' in good, 'predicted' in good), (False, True))
    refused(['lab', 'e.ini', '-c', 'bad'], 'sluice lab: ' + why, 1)


TWO_DEVICES = """[experiment]
name = two
[machine]
cpus = 2
memory = 64M
[device]
model = rate
name = slow
mbps = 5
[device fast]
model = rate
mbps = 50
mount = /fast
[phase p]
measure = yes
line = [a]
line = rw=write
line = bs=64k
line = size=1m
line = end_fsync=1
line = filename=a
line = [b]
line = rw=write
line = bs=64k
line = size=2m
line = end_fsync=1
line = filename=/fast/./b
line = [c]
line = rw=write
line = bs=64k
line = size=4m
line = end_fsync=1
line = filename=/faster
[case x]
[case y]
device.fast.mbps = 25
[reference x]
source = arithmetic
device_write_bytes = 7M
device.fast.write_bytes = 2M
[tolerance]
device_write_bytes = at least 100 %
"""


def two_devices(change=lambda text: text):
    write('two.ini', change(TWO_DEVICES))


def test_files_are_on_the_device_whose_folder_they_are_in():
    two_devices()
    done = sluice('lab', 'two.ini', '--check', '--json', '-')
    equal((done.status, done.err), (0, ''))
    x, y = json.loads(done.out)['cases']
    for case in (x, y):
        slow, fast = case['devices']
        equal([slow['device'], fast['device']], ['slow', 'fast'])
        # what the jobs wrote there, and some KiB of the file system's log
        for device, data in ((slow, 5 << 20), (fast, 2 << 20)):
            assert data <= device['device_write_bytes'] < data + (64 << 10), device
        # figures of all are sums, busy that of the busiest
        for key in ('device_reads', 'device_writes', 'device_write_bytes'):
            equal(case['predicted'][key], slow[key] + fast[key])
        equal(case['predicted']['device_busy_percent'], slow['device_busy_percent'])
    # half as fast: twice as long at it
    assert 1.9 < y['devices'][1]['device_busy_percent'] / x['devices'][1]['device_busy_percent'] < 2.1
    equal(x['reference']['device.fast'], {'device_write_bytes': 2 << 20})
    done = sluice('lab', 'two.ini', '--explain')
    contains(done.out, '\nx, sluice: slow: 0 reads, ')
    contains(done.out, '  Device fast was busy ')


def test_a_devices_figure_is_checked_too():
    two_devices(lambda text: text.replace('device.fast.write_bytes = 2M', 'device.fast.write_bytes = 3M'))
    done = sluice('lab', 'two.ini', '-c', 'x', '--check')
    equal((done.status, done.err),
          (1, 'x: device fast: device_write_bytes is predicted 2M, published 3M: it should be at least 100 % of it\n'))


def two_refused(before, after, complaint):
    two_devices(lambda text: text.replace(before, after))
    refused(['lab', 'two.ini'], 'sluice lab: two.ini' + complaint)


def test_mistakes_with_devices_are_refused_where_they_stand():
    two_refused('mount = /fast\n', '', ':12: section [device fast] needs "mount", the folder its files are in')
    two_refused('name = slow', 'mount = /slow', ':8: [device] takes all files that are in no other '
                "device's mount, and has none itself")
    two_refused('device.fast.mbps', 'device.fats.mbps',
                ':36: "device.fats.mbps" is of a device there is not: no [device fats]')
    two_refused('[device fast]', '[device fa.st]', ':10: [device fa.st]: the name of a device has at most '
                '31 characters, and no dot, slash or blank')
    two_refused('[case x]', '[device third]\nmodel = rate\nmount = /fast\n[case x]',
                ':36: devices "fast" and "third" have the same mount, /fast')
    two_refused('mount = /fast', 'mount = /fast\nmin_ratio = 30\nmax_ratio = 20',
                ":15: the device's part of the limit: min is above max")
    two_refused('mbps = 50\nmount = /fast', 'mbps = 50\nmount = /fast\nmin_ratio = 60\n[device x]\nmodel = rate\n'
                'mount = /x\nmin_ratio = 40',
                ":18: the devices' min parts come to all of the limit: nothing is left to share")
    two_refused('mount = /fast', 'mount = /fast\nmax_bytes = 1G',
                ':14: max_bytes cannot be more than the limit of all devices, 12.8M')
    two_refused('mount = /fast', 'mount = /fast\nmax_ratio = 200',
                ':14: max_ratio cannot be "200", only 0 to 100 (percent)')
    two_refused('mount = /fast', 'mount = /fast\nsize = 1M',
                ':15: the files of phase "p" have 2M, but device fast holds 1M')
    two_refused('measure = yes', 'measure = yes\ndevice.fast.mount = /x',
                ':16: a phase cannot change the mount of the device')
    two_refused('device.fast.write_bytes', 'device.fats.write_bytes',
                ':40: "device.fats.write_bytes" is no figure of a device: device.NAME.FIGURE is, with '
                'a [device NAME]')
    two_refused('device.fast.write_bytes', 'device.fast.fsyncs',
                ':40: "device.fast.fsyncs": a device has no figure "fsyncs"')


def test_phases_may_change_devices_and_their_parts():
    """Two devices exchange what they have of the limit: neither step alone would be allowed."""
    two_devices(lambda text: text.replace('mount = /fast', 'mount = /fast\nmin_ratio = 60').replace(
        '[phase p]', '[phase before]\nline = [a]\nline = rw=write\nline = size=1m\nline = filename=/fast/x\n'
        'device.min_ratio = 60\ndevice.fast.min_ratio = 30\ndevice.fast.mbps = 1\nsync_after = yes\n[phase p]'))
    done = sluice('lab', 'two.ini', '--check', '--json', '-', '-c', 'x')
    equal((done.status, done.err), (0, ''))
    case = json.loads(done.out)['cases'][0]
    assert case['virtual_s'] > 1 + case['predicted']['ended_s'], case  # a megabyte at 1 MB/s


def test_what_may_be_a_mistake_is_noted():
    two_devices(lambda text: text.replace('/fast/./b', '/fats/b').replace('device.fast.write_bytes = 2M\n', ''))
    done = sluice('lab', 'two.ini', '-c', 'x')
    equal((done.status, done.err),
          (0, 'note: two.ini: no job has a file in /fast, where device "fast" is mounted\n'))
    two_devices(lambda text: text.replace('line = filename=a\n', 'line = filename=a\nline = disk_util=0\n'
                                          'line = iodepth=4\n'))
    done = sluice('lab', 'two.ini', '-c', 'x')
    equal(done.status, 0)
    contains(done.err, 'note: two.ini:')


def test_a_key_stands_once():
    small(lambda text: text.replace('cpus = 4', 'cpus = 4\nhz = 100\ncpus = 8'))
    refused(['lab', 'small.ini'],
            'sluice lab: small.ini:10: "cpus" stands twice in section [machine], first on line 8')
    write('m.ini', '[device]\nmodel = rate\niops = 1\niops = 2\n')
    complaint = 'm.ini:4: "iops" stands twice in section [device], first on line 3'
    refused(['limits', '-m', 'm.ini'], 'sluice limits: ' + complaint)
    write('j.fio', '[j]\nrw=write\nsize=1m\nsize=2m\n')  # fio's language has another rule
    refused(['fio', 'j.fio', '-m', 'm.ini'], 'sluice fio: ' + complaint)
    equal(sluice('fio', 'j.fio').status, 0)


def test_a_pipe_without_a_writer_is_refused():
    os.mkfifo('pipe')
    refused(['lab', 'pipe'], 'sluice lab: pipe: not a regular file')
    refused(['fio', 'pipe'], 'sluice fio: pipe: not a regular file')
    refused(['limits', '-m', 'pipe'], 'sluice limits: pipe: not a regular file')
    small(lambda text: text.replace('small-load.fio', 'pipe'))
    refused(['lab', 'small.ini'], 'sluice lab: pipe: not a regular file')
    # what a shell hands over is no such pipe
    with open(SMALL) as f:
        text = f.read().replace('small-', os.path.dirname(SMALL) + '/small-')
    done = subprocess.run(['bash', '-c', '"$0" lab <(printf %s "$1") -c sluice', program.SLUICE, text],
                          capture_output=True, text=True, check=False)
    equal((done.returncode, done.stderr), (0, ''))


program.main(globals())
