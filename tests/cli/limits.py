# SPDX-License-Identifier: MIT
"""sluice limits: of machine files, and of the kernel this runs on."""
import json
import os

import program
from program import ROOT, Skip, contains, equal, refused, sluice

M8G = os.path.join(ROOT, 'machines', 'm8g.8xlarge.ini')
IO2 = os.path.join(ROOT, 'machines', 'io2.ini')


def limits(*words):
    done = sluice('limits', *words, '--json')
    equal((done.status, done.err), (0, ''))
    return json.loads(done.out)


def test_a_machine_file_has_the_published_limits():
    found = limits('-m', M8G)
    # 12.2 GiB was published as the background threshold of this machine
    assert abs(found['background_bytes'] / (12.2 * 2**30) - 1) < 0.01, found
    equal(found['dirtyable_bytes'], (128 << 30) - int(5.82 * 2**30) // 4096 * 4096 + 4096)
    pages = found['dirtyable_bytes'] // 4096
    equal(found['limit_bytes'], pages * 819 // 4096 * 4096)
    equal(found['background_bytes'], pages * 409 // 4096 * 4096)
    equal(found['warnings'], [])
    assert 'kernel' not in found


def test_text_and_json_say_the_same():
    found = limits('-m', M8G)
    lines = sluice('limits', '-m', M8G).out.splitlines()
    for name in 'dirtyable', 'background', 'freerun', 'setpoint', 'limit':
        line, = [line.split() for line in lines if line.startswith(name)]
        equal(line[2], str(found[name + '_bytes']))
    contains(lines[-1], 'ebs ')


def test_other_settings_and_what_they_cannot_do():
    found = limits('-m', M8G, '-s', 'vm.dirty_bytes=16M', '-s', 'vm.dirty_background_bytes=8M')
    equal((found['limit_bytes'], found['freerun_bytes'], found['setpoint_bytes']),
          (16 << 20, 12 << 20, 14 << 20))
    # 125 MiB a second are 25 MiB in 200 ms
    equal(len(found['warnings']), 1)
    contains(found['warnings'][0], 'may have 16M dirty, but writes 25M in 200 ms')
    done = sluice('limits', '-m', M8G, '-s', 'vm.dirty_background_ratio=40')
    equal((done.status, done.err), (0, ''))
    contains(done.out, '\nwarning: dirty_background_ratio = 40 (48.9G) is not below dirty_ratio = '
                       '20 (24.4G): half of the limit, 12.2G, counts instead\n')
    found = limits('-m', IO2, '-s', 'machine.cpus=8', '-s', 'machine.memory=64G', '-s',
                   'device.bandwidth=100M')
    equal(found['devices'][0]['bandwidth_bytes'], 100 << 20)
    found = limits('-m', M8G, '--bandwidth', '200G')
    contains(found['warnings'][0], 'may have 24.4G dirty, but writes 40G in 200 ms')


def kernels_own():
    with open('/proc/vmstat') as f:
        found = dict(line.split() for line in f)
    if 'nr_dirty_threshold' not in found or 'nr_dirty_background_threshold' not in found:
        raise Skip('this kernel does not tell its thresholds in /proc/vmstat')


def test_this_machine_has_its_kernels_limits():
    if not os.path.exists('/proc/vmstat') or not os.path.exists('/proc/zoneinfo'):
        raise Skip('there is no /proc here that tells of memory')
    kernels_own()
    # memory that comes or goes between the reading of two files is not our mistake
    for _ in range(20):
        found = limits('--this-machine')
        off = [found[name] / found['kernel'][name] - 1
               for name in ('limit_bytes', 'background_bytes')]
        if max(map(abs, off)) <= 0.02:
            break
    else:
        raise AssertionError('off by %r: %r' % (off, found))
    other = limits('--this-machine', '-s', 'vm.dirty_bytes=8M')
    equal(other['limit_bytes'], 8 << 20)
    assert other['kernel']['limit_bytes'] > 0


def test_mistakes_are_refused():
    which = 'sluice limits: of which machine: either -m FILE or --this-machine'
    refused(['limits'], which)
    refused(['limits', '-m', M8G, '--this-machine'], which)
    refused(['limits', M8G], 'sluice limits: takes no arguments, not "%s"; a machine file is '
                             'named by -m' % M8G)
    refused(['limits', '--this-machine', '-s', 'device.iops=3'],
            'sluice limits: -s device.iops=3: only vm.KEY can be set of the running system')
    refused(['limits', '-m', M8G, '-s', 'vm.dirty_ratoi=3'],
            'sluice limits: -s vm.dirty_ratoi=3: unknown key "dirty_ratoi" in section [vm]; did '
            'you mean "dirty_ratio"?')
    refused(['limits', '-m', M8G, '-s', 'accounting=page'],
            'sluice limits: -s accounting=page: a setting is SECTION.KEY=VALUE')
    refused(['limits', '-m', IO2], 'sluice limits: %s: it does not say how much memory and how many CPUs there are, only what '
            'device; say it with -s machine.memory=16G -s machine.cpus=8' % IO2)
    refused(['limits', '-m', 'none.ini'],
            'sluice limits: none.ini: No such file or directory')
    refused(['limits', '-m', M8G, '--bandwidth', 'fast'],
            'sluice limits: --bandwidth cannot be "fast", only a size, as 500M')


def test_what_the_throttle_allows_at_so_many_dirty_pages():
    machine = os.path.join(ROOT, 'experiments', 'field', 'strict-limit-machine.ini')
    for pages, line in (
            (3071, 'its writers run free up to 3071 pages, 12M'),
            (3072, 'position ratio 1024/1024: of 102400 KiB/s a writer is allowed 102400 (slowed above 3071 pages, 12M)'),
            (3319, 'position ratio 1009/1024: of 102400 KiB/s a writer is allowed 100900 (slowed above 3071 pages, 12M)')):
        done = sluice('limits', '-m', machine, '--dirty', str(pages))
        equal((done.status, done.err), (0, ''))
        assert '\nstrict       %s\n' % line in done.out, done.out
    done = sluice('limits', '-m', machine, '--dirty', '3319', '--json')
    equal(json.loads(done.out)['devices'][0]['pace'],
          {'dirty_pages': 3319, 'freerun_pages': 3071, 'free': False, 'pos_ratio_1024': 1009,
           'ratelimit_kb': 102400, 'allowed_kb': 100900})
    refused(['limits', '-m', machine, '--dirty', 'many'],
            'sluice limits: --dirty cannot be "many", only 0 to 4294967295')


def test_a_machine_may_have_several_devices():
    with open('two.ini', 'w') as f:
        f.write('[machine]\ncpus = 4\nmemory = 16G\n[device]\nmodel = rate\nname = disk\nmbps = 500\n'
                '[device stick]\nmodel = rate\nmbps = 1\nmount = /mnt\nmax_ratio = 1\n')
    done = sluice('limits', '-m', 'two.ini', '-s', 'device.stick.mbps=2', '--json')
    equal((done.status, done.err), (0, ''))
    devices = json.loads(done.out)['devices']
    equal([(d['name'], d['max_ratio'], d['bandwidth_bytes']) for d in devices],
          [('disk', 100.0, 500000000), ('stick', 1.0, 2000000)])
    refused(['limits', '-m', 'two.ini', '-s', 'device.stik.mbps=2'],
            'sluice limits: -s device.stik.mbps=2: "device.stik.mbps" is of a device there is not: no [device stik]')


program.main(globals())
