# SPDX-License-Identifier: MIT
"""sluice sweep as people use it, alone on one machine; cli/mpi has it on several ranks."""
import fcntl
import json
import os
import re
import signal
import subprocess
import time
import xml.dom.minidom

import program
from program import SMALL, contains, equal, refused, sixteenth_of_p2, sluice

BYTES = 'vm.dirty_bytes=1M,4M,16M'


def swept(*words):
    done = sluice('sweep', *words, '--json', '-')
    equal((done.status, done.err), (0, ''))
    return json.loads(done.out)


def test_points_are_what_the_lab_says_of_them():
    result = swept(SMALL, '-s', BYTES, '-s', 'device.iops=300,600')
    equal(list(result), ['experiment', 'seed', 'axes', 'points', 'curves'])
    equal(result['axes'], [{'key': 'vm.dirty_bytes', 'values': ['1M', '4M', '16M']},
                           {'key': 'device.iops', 'values': ['300', '600']}])
    equal(len(result['points']), 12)
    for i, point in enumerate(result['points']):
        equal(list(point), ['point', 'case', 'policy', 'settings', 'virtual_s', 'predicted'])
        equal(point['point'], i)
        settings = ['%s=%s' % item for item in point['settings'].items()]
        alone = program.figures(program.SLUICE, SMALL, '-c', point['case'], '-s', settings[0],
                                '-s', settings[1])['cases'][0]
        equal((point['policy'], point['virtual_s'], point['predicted']),
              (alone['policy'], alone['virtual_s'], alone['predicted']))


def test_the_table_has_a_row_for_each_point_and_marks_knees():
    words = (SMALL, '-c', 'sluice', '-s', 'vm.dirty_bytes=1M,4M,16M,32M', '-s', 'device.iops=300')
    done = sluice('sweep', *words)
    equal((done.status, done.err), (0, ''))
    lines = done.out.splitlines()
    equal(lines[:3], ['small: Random writes into large folios, small: 4 points of case sluice',
                      'with device.iops=300', ''])
    equal(lines[3].split(), ['vm.dirty_bytes', 'write', 'max', 'ms', 'write', 'IOPS', 'write',
                             'factor', 'knee'])
    rows = [line.split() for line in lines[4:8]]
    equal([row[0] for row in rows], ['1M', '4M', '16M', '32M'])
    curve, = swept(*words)['curves']
    equal(curve['points'], [0, 1, 2, 3])
    assert curve['knees']['write_iops'] is not None, curve
    equal([i for i, row in enumerate(rows) if row[2].endswith('*')], [curve['knees']['write_iops']])
    equal([i for i, row in enumerate(rows) if row[-1] == '*'], [curve['knee']])
    equal(lines[8:], ['', '* knee along vm.dirty_bytes: of the figure before it, or in the last '
                          'column of all together'])
    assert not any(line.endswith(' ') for line in lines), lines


def write(path, text):
    with open(path, 'w') as f:
        f.write(text)


def test_fsyncs_and_rewritten_bytes_are_measured():
    write('x.ini', '[experiment]\nname = x\n[machine]\ncpus = 2\nmemory = 64M\n[device]\n'
                   'model = rate\niops = 1000\nbandwidth = 1G\n[phase w]\njob = page.fio\n'
                   'measure = yes\n[case a]\n')
    job = '[w]\nrw=write\nsize=256k\nfilename=f\nbs=%s\n%s'
    write('page.fio', job % ('4k', ''))
    write('synced.fio', job % ('4k', 'fsync=1\n'))
    write('quarter.fio', job % ('1k', 'fsync=1\n'))
    write('read.fio', job.replace('rw=write', 'rw=read') % ('4k', ''))
    points = swept('x.ini', '-s', 'phase.w.job=page.fio,synced.fio,quarter.fio,read.fio')['points']
    page, synced, quarter, read = (p['predicted'] for p in points)
    # without fsync nothing is written yet, but it is owed
    equal((page['device_write_bytes'], page['write_factor']), (0, 1))
    assert 'fsync_max_ms' not in page, page
    # with each a KiB of log; no fsync follows the last write: its page is owed
    equal((synced['device_write_bytes'], synced['write_factor']),
          (63 * 5120, (63 * 5120 + 4096) / 262144))
    # a page for each quarter of it, which lasts as long as one write of the device
    equal((quarter['device_write_bytes'], quarter['write_factor']),
          (255 * 5120, (255 * 5120 + 4096) / 262144))
    for p in synced, quarter:
        assert 1 <= p['fsync_p99_ms'] * 1.02 and p['fsync_p99_ms'] <= p['fsync_max_ms'] * 1.02 < 3, p
    assert 'write_factor' not in read and 'fsync_max_ms' not in read, read


def test_a_report_is_a_page_of_its_own():
    words = (SMALL, '-s', 'vm.dirty_bytes=1M,4M,16M,32M', '-s', 'device.iops=200,300')
    equal(sluice('sweep', *words, '--report', 'r.html').status, 0)
    with open('r.html') as f:
        page = f.read()
    root = xml.dom.minidom.parseString(re.sub(r'<(meta|br)([^>]*)>', r'<\1\2/>',
                                              page.replace('<!doctype html>', '')))
    equal(root.getElementsByTagName('script'), [])
    assert 'http' not in page.replace('http-equiv', ''), 'it refers to something else'
    curves = swept(*words)['curves']
    equal(len(curves), 4)
    rows = root.getElementsByTagName('tr')
    equal(len(rows), 1 + 16)
    equal(sum('*' in cell.firstChild.data for row in rows for cell in
              row.getElementsByTagName('td')[-1:] if cell.firstChild),
          sum(curve['knee'] is not None for curve in curves))
    figures = root.getElementsByTagName('figure')
    equal([f.getElementsByTagName('b')[0].firstChild.data for f in figures],
          ['write max ms', 'write IOPS', 'write factor'])
    for figure, key in zip(figures, ('write_max_ms', 'write_iops', 'write_factor')):
        equal(len(figure.getElementsByTagName('path')), 4)
        rings = [c for c in figure.getElementsByTagName('circle')
                 if c.getAttribute('fill') == 'none']
        equal(len(rings), sum(curve['knees'][key] is not None for curve in curves))


def test_what_people_wrote_is_text_in_a_report():
    name = '<script>alert(1)</script>&"\''
    write('w.fio', '[w]\nrw=write\nsize=1m\nfilename=f\n')
    write('x.ini', '[experiment]\nname = %s\ntitle = %s\n[machine]\ncpus = 2\nmemory = 64M\n'
                   '[device]\nmodel = memory\n[phase p]\njob = w.fio\nmeasure = yes\n'
                   '[case %s]\n[case b]\n' % (name, name, name))
    equal(sluice('sweep', 'x.ini', '-s', 'machine.hz=100,250,1000', '--report', 'r.html').status, 0)
    with open('r.html') as f:
        page = f.read()
    assert '<script' not in page
    contains(page, '<h1>&#60;script&#62;alert(1)&#60;/script&#62;&#38;&#34;&#39;</h1>')


def test_a_journal_saves_what_was_done():
    words = ('sweep', SMALL, '-s', BYTES, '-j', '2')
    whole = sluice(*words).out
    equal(sluice(*words, '--resume', 'j').out, whole)
    with open('j') as f:
        lines = f.readlines()
    equal(sorted(json.loads(line)['point'] for line in lines[1:]), list(range(6)))
    # half of it, and a torn line; the second point's figures are not those that a run gives
    record = json.loads(lines[2])
    record['predicted']['write_iops'] = 123456
    write('j', ''.join(lines[:2]) + json.dumps(record) + '\n' + lines[3][:20])
    resumed = sluice(*words, '--resume', 'j')
    equal((resumed.status, resumed.err), (0, ''))
    contains(resumed.out, '123456')
    with open('j') as f:
        equal(sorted(json.loads(line)['point'] for line in f.readlines()[1:]), list(range(6)))
    done = sluice(*words, '--resume', 'j', '--seed', '2')
    equal((done.status, done.out), (2, ''))
    contains(done.err, 'sluice sweep: j:1: this is no journal of this sweep')


def lines_of(path):
    return open(path).read().count('\n') if os.path.exists(path) else 0


def test_a_signal_leaves_a_journal():
    experiment = sixteenth_of_p2()
    words = ['sweep', experiment, '-c', 'baseline', '-c', 'split', '-s',
             'vm.dirty_bytes=64M,128M,256M,512M', '-j', '1']
    process = subprocess.Popen([program.SLUICE, *words, '--resume', 'j'],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and lines_of('j') < 3:
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    equal((process.returncode, out.decode()), (128 + signal.SIGTERM, ''))
    equal(err.decode(), 'sluice sweep: stopped before all 8 points were run; the same command '
                        'with --resume j runs the rest\n')
    finished = lines_of('j')
    assert 3 <= finished < 9, finished
    equal(sluice(*words, '--resume', 'j').out, sluice(*words).out)


def test_points_that_fail_are_named_and_run_again():
    write('good.fio', '[writer]\nrw=write\nsize=1m\nfilename=f\n')
    write('bad.fio', '[reader]\nrw=read\nfilename=nofile\n')
    write('x.ini', '[experiment]\nname = x\n[machine]\ncpus = 2\nmemory = 64M\n[device]\n'
                   'model = memory\n[phase p]\njob = good.fio\nmeasure = yes\n[case a]\n')
    words = ('sweep', 'x.ini', '-s', 'phase.p.job=bad.fio,good.fio', '--resume', 'j')
    why = 'case a: phase p, job reader (bad.fio:1): job reader needs a size, since nofile does not exist'
    for _ in range(2):
        done = sluice(*words, '--json', 'r.json')
        equal((done.status, done.err), (1, 'sluice sweep: point 0: %s\n' % why))
        bad, good = [line.split() for line in done.out.splitlines()[-2:]]
        equal((bad[0], set(bad[1:])), ('bad.fio', {'failed'}))
        assert 'failed' not in good, good
        with open('r.json') as f:
            bad, good = json.load(f)['points']
        equal((bad['error'], 'predicted' in bad), (why, False))
        equal(('error' in good, 'predicted' in good), (False, True))
    # the head, the good one once, the bad one twice
    equal(lines_of('j'), 4)


def test_mistakes_are_refused():
    refused(['sweep'], 'sluice sweep: which experiment? "sluice sweep --help" says more')
    refused(['sweep', SMALL, 'other.ini'],
            'sluice sweep: one experiment at a time, not "other.ini" too')
    refused(['sweep', SMALL, '-s', 'vm.dirty_ratio=5,500'],
            'sluice sweep: -s vm.dirty_ratio=500: dirty_ratio cannot be "500", only 0 to 100 '
            '(percent)')
    refused(['sweep', SMALL, '-c', 'basline'],
            'sluice sweep: %s: there is no case "basline"; did you mean "baseline"?' % SMALL)
    refused(['sweep', SMALL, '--patience', '1'],
            'sluice sweep: --patience cannot be "1", only 2 to 86400')
    refused(['sweep', SMALL, '--json', '/'], 'sluice sweep: --json /: is a folder')
    many = ','.join(str(i + 1) for i in range(100))
    refused(['sweep', SMALL, '-s', 'device.iops=' + many, '-s', 'vm.dirty_ratio=' + many],
            'sluice sweep: these are 20000 points, more than 16384')
    refused(['sweep', SMALL, '--resume', '/nowhere/j'],
            'sluice sweep: /nowhere/j: the journal cannot be written: No such file or directory')
    refused(['sweep', SMALL, '--resume', '/'],
            'sluice sweep: /: the journal cannot be written: Is a directory')
    # what has no end is not read to it, and nobody is waited for
    os.mkfifo('fifo')
    refused(['sweep', SMALL, '--resume', 'fifo'],
            'sluice sweep: fifo: the journal cannot be written: not a regular file')
    refused(['sweep', SMALL, '--resume', '/dev/zero'],
            'sluice sweep: /dev/zero: the journal cannot be read: not a regular file')
    with open('held', 'w') as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused(['sweep', SMALL, '--resume', 'held'],
                'sluice sweep: held: the journal is in use by another sweep')
    equal(os.path.getsize('held'), 0)


def test_settings_that_override_each_other_are_remarked_on():
    done = sluice('sweep', SMALL, '-c', 'sluice', '-s', 'vm.dirty_ratio=20,30', '-s', 'vm.dirty_bytes=32M,64M')
    equal((done.status, done.err),
          (0, 'note: vm.dirty_ratio and vm.dirty_bytes override each other: of each point only the later counts\n'))


def test_the_page_may_go_to_standard_output():
    words = ['sweep', SMALL, '-c', 'sluice', '-s', 'device.iops=200,300,400']
    done = sluice(*words, '--report', '-')
    equal((done.status, done.err), (0, ''))
    equal(sluice(*words, '--report', 'r.html').status, 0)
    with open('r.html') as f:
        equal(done.out, f.read())


program.main(globals())
