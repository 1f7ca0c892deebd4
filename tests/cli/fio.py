# SPDX-License-Identifier: MIT
"""sluice fio as people use it: a job file in, fio's reports out."""
import json
import os
import shutil
import subprocess

import program
from program import Skip, contains, equal, refused, sluice

JOBS = '''\
[global]
size=8m
directory=d
disk_util=0
[writer]
description=writes
rw=randwrite
rate_iops=1000
runtime=2
time_based
fsync=100
numjobs=2
group_reporting
[reader]
stonewall
rw=read
bs=64k
'''


def write(path, text):
    with open(path, 'w') as f:
        f.write(text)


def report(*words):
    done = sluice('fio', 'jobs.fio', '--output-format=json', '-q', *words)
    equal((done.status, done.err), (0, ''))
    return json.loads(done.out)


def test_json_has_what_the_jobs_did():
    write('jobs.fio', JOBS)
    result = report()
    equal([(j['jobname'], j['groupid'], j['error']) for j in result['jobs']],
          [('writer', 0, 0), ('reader', 1, 0)])
    writer, reader = result['jobs']
    equal(result['global options'], {'size': '8m', 'directory': 'd', 'disk_util': '0'})
    equal(writer['job options']['rate_iops'], '1000')
    equal(writer['desc'], 'writes')
    w = writer['write']
    # two clones ask for 1,000 a second each, for 2 s
    equal(w['total_ios'], 4000)
    equal(w['io_bytes'], 4000 * 4096)
    equal(w['runtime'], 2000)
    assert abs(w['iops'] - 2000) < 0.01 and abs(w['bw_bytes'] - 2000 * 4096) <= 1, w
    assert w['bw_samples'] == 4 and abs(w['iops_mean'] - 2000) < 10, w
    equal(writer['read']['total_ios'], 0)
    equal(writer['sync']['total_ios'], 40)
    assert w['clat_ns']['N'] == 4000 and w['clat_ns']['min'] > 0, w
    assert list(w['clat_ns']['percentile'])[0] == '1.000000', w
    equal(reader['read']['total_ios'], 128)
    equal(sum(writer['iodepth_level'].values()), 100)
    for job in result['jobs']:
        assert abs(sum(sum(job[k].values()) for k in
                       ('latency_ns', 'latency_us', 'latency_ms')) - 100) < 1e-6, job


def test_the_same_again_whatever_the_time_of_day():
    write('jobs.fio', JOBS)
    equal(report(), report())
    assert report('--seed', '2') != report()


def shape(value):
    """Keys and types, without what depends on options or on what was done."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()
                if k not in ('percentile', 'job options', 'global options', 'error_text', 'desc')}
    if isinstance(value, list):
        return [shape(value[0])]
    return 'number' if isinstance(value, (int, float)) else type(value).__name__


def test_json_has_the_structure_of_fios_own():
    if not shutil.which('fio'):
        raise Skip('fio is not installed')
    write('jobs.fio', '[j]\nrw=randrw\nsize=256k\nfilename=f\nfsync=8\nrandrepeat=1\n')
    theirs = json.loads(subprocess.run(['fio', '--output-format=json', 'jobs.fio'], check=True,
                                       stdout=subprocess.PIPE).stdout)
    ours = report()
    theirs.setdefault('disk_util', ours['disk_util'])  # not in containers without /sys
    theirs['disk_util'] = theirs['disk_util'] or ours['disk_util']
    for disk in theirs['disk_util']:
        for key in [k for k in disk if k not in ours['disk_util'][0]]:
            del disk[key]  # of md and dm devices
    equal(shape(ours), shape(theirs))
    for key in ('read', 'write', 'sync'):
        for j, name in ((ours, 'ours'), (theirs, 'theirs')):
            assert j['jobs'][0][key]['total_ios'] > 0, (name, key)
    a, b = ours['jobs'][0], theirs['jobs'][0]
    equal(list(a['read']['clat_ns']['percentile']), list(b['read']['clat_ns']['percentile']))
    equal(a['job options'], b['job options'])
    equal(a['read']['total_ios'] + a['write']['total_ios'],
          b['read']['total_ios'] + b['write']['total_ios'])


def test_the_table_names_machine_and_jobs():
    write('jobs.fio', JOBS)
    done = sluice('fio', 'jobs.fio')
    equal(done.status, 0)
    equal(done.err, 'note: jobs.fio:4: disk_util has no effect here: what is measured does not '
                    'depend on it here\n')
    lines = done.out.splitlines()
    equal(lines[0], 'jobs.fio on the default machine: 8 CPUs, 16G of memory, device nvme; policy '
                    'sluice')
    equal(lines[2].split()[:4], ['job', 'clones', 'what', 'IOPS'])
    equal([line.split()[:4] for line in lines[3:6]],
          [['writer', '2', 'write', '2000'], ['writer', '2', 'sync', '40'],
           ['reader', '1', 'read', lines[5].split()[3]]])


def test_machine_and_policy_can_be_chosen():
    write('jobs.fio', '[j]\nrw=read\nsize=8m\nbs=128k\ninvalidate=0\n')
    write('slow.ini', '[device]\nmodel = rate\niops = 100\nname = slow\n')
    done = sluice('fio', 'jobs.fio', '-q', '-m', 'slow.ini', '-p', 'linux-6.1',
                  '-s', 'machine.cpus=3', '-s', 'max_order=2')
    equal((done.status, done.err), (0, ''))
    contains(done.out, 'on slow.ini: 3 CPUs, 16G of memory, device slow; policy linux-6.1 '
                       'max_order=2\n')
    write('jobs.fio', '[j]\nrw=read\nsize=$mb_memory*64k\nnumjobs=$ncpus\nbs=$pagesize\n')
    done = sluice('fio', 'jobs.fio', '-s', 'machine.memory=64M', '-s', 'machine.cpus=3')
    equal(done.status, 0)
    equal([line.split()[0] for line in done.out.splitlines()[3:6]], ['j'] * 3)
    contains(done.out, ' 4M in ')


def test_a_report_can_go_to_a_file():
    write('jobs.fio', JOBS)
    done = sluice('fio', 'jobs.fio', '-q', '--output-format=json', '--output=r.json')
    equal((done.status, done.out, done.err), (0, '', ''))
    with open('r.json') as f:
        equal(json.load(f), report())
    equal(sorted(os.listdir('.')), ['jobs.fio', 'r.json'])


def test_logs_are_fios():
    write('jobs.fio', '[a]\nrw=write\nsize=64k\nwrite_lat_log\nwrite_iops_log=x\nlog_offset=1\n'
                      '[b]\nrw=read\nsize=1m\nrate_iops=100\nwrite_bw_log\nlog_avg_msec=500\n')
    equal(sluice('fio', 'jobs.fio').status, 0)
    equal(sorted(f for f in os.listdir('.') if f.endswith('.log')),
          ['a_clat.1.log', 'a_lat.1.log', 'b_bw.2.log', 'x_iops.1.log'])
    with open('x_iops.1.log') as f:
        equal(f.read(), ''.join('0, 1, 1, 4096, %d, 0\n' % (i * 4096) for i in range(16)))
    with open('b_bw.2.log') as f:
        lines = [[int(n) for n in line.split(', ')] for line in f]
    equal([line[0] for line in lines][:-1], [500, 1000, 1500, 2000, 2500])
    equal([line[1:] for line in lines][:-1], [[400, 0, 0, 0]] * 5)


def test_lenience_and_notes():
    write('jobs.fio', '[j]\nrw=read\nsize=64k\nfrobnicate=1\natomic=1\n')
    refused(['fio', 'jobs.fio'], 'sluice fio: jobs.fio:4: unknown option frobnicate')
    done = sluice('fio', 'jobs.fio', '--lenient')
    equal(done.status, 0)
    equal(done.err, "note: jobs.fio:4: the unknown option frobnicate is ignored\n"
                    "note: jobs.fio:5: fio's option atomic is ignored\n")
    done = sluice('fio', 'jobs.fio', '--lenient', '--parse-only')
    equal((done.status, done.out, len(done.err.splitlines())), (0, '', 2))


def test_what_makes_no_sense_is_refused():
    write('jobs.fio', JOBS)
    write('odd.ini', '[machine]\ncpus = 0\n')
    write('none.ini', '[phase x]\n')
    refused(['fio'], 'sluice fio: which job file? "sluice fio --help" says more')
    refused(['fio', 'none.fio'], 'sluice fio: none.fio: No such file or directory')
    refused(['fio', 'jobs.fio', 'jobs.fio'],
            'sluice fio: one job file at a time, not "jobs.fio" too')
    refused(['fio', 'jobs.fio', '--output-format=terse'],
            'sluice fio: --output-format cannot be "terse", only normal or json')
    refused(['fio', 'jobs.fio', '-p', 'sluce'],
            'sluice fio: unknown policy "sluce"; did you mean "sluice"?')
    refused(['fio', 'jobs.fio', '-m', 'odd.ini'],
            'sluice fio: odd.ini:2: cpus cannot be "0", only 1 to 1024')
    refused(['fio', 'jobs.fio', '-m', 'none.ini'],
            'sluice fio: none.ini:1: [phase x] is no section of a machine')
    refused(['fio', 'jobs.fio', '-s', 'vn.dirty_ratio=3'],
            'sluice fio: -s vn.dirty_ratio=3: "vn.dirty_ratio" is in no section there is; did you mean "vm."?')
    refused(['fio', 'jobs.fio', '-s', 'cpus'], 'sluice fio: -s cpus: KEY=VALUE is needed')
    write('jobs.fio', '[j]\nrw=read\nioengine=libaoi\n')
    refused(['fio', 'jobs.fio'],
            'sluice fio: jobs.fio:3: ioengine=libaoi is unknown, did you mean libaio? (psync, '
            'sync, vsync, pvsync, pvsync2, libaio, io_uring, posixaio, mmap, null)')
    write('jobs.fio', '[j]\nrw=read\nsize=${NOT_SET}\n')
    refused(['fio', 'jobs.fio'],
            'sluice fio: jobs.fio:3: size=${NOT_SET}: the environment has no variable NOT_SET')


def test_files_are_on_the_device_whose_folder_they_are_in():
    write('two.ini', '[machine]\ncpus = 2\nmemory = 64M\n[device]\nmodel = rate\nname = slow\n'
          '[device fast]\nmodel = rate\nmount = /fast\n')
    write('two.fio', '[a]\nrw=write\nsize=1m\nbs=64k\nend_fsync=1\n'
          '[b]\nrw=write\nsize=2m\nbs=64k\nend_fsync=1\ndirectory=/fast\n')
    done = sluice('fio', 'two.fio', '-m', 'two.ini', '-s', 'device.fast.max_sectors_kb=64',
                  '--output-format=json')
    equal((done.status, done.err), (0, ''))
    slow, fast = json.loads(done.out)['disk_util']
    equal([slow['name'], fast['name']], ['slow', 'fast'])
    # 256 and 64 KiB at a time, and the file system's log
    assert 4 <= slow['write_ios'] < 12 and 32 <= fast['write_ios'] < 40, (slow, fast)
    done = sluice('fio', 'two.fio', '-m', 'two.ini')
    contains(done.out, '\nslow: 0 reads, %d writes, ' % slow['write_ios'])
    contains(done.out, '\nfast: 0 reads, ')


def test_a_failed_job_is_named_and_the_others_are_reported():
    write('jobs.fio', '[bad]\nrw=read\nfilename=nothing\n[good]\nrw=write\nsize=64k\n')
    done = sluice('fio', 'jobs.fio')
    equal((done.status, done.err), (1, ''))
    contains(done.out, 'failed: job bad needs a size, since nothing does not exist')
    contains(done.out, '\ngood ')
    done = sluice('fio', 'jobs.fio', '--output-format=json')
    bad, good = json.loads(done.out)['jobs']
    equal((done.status, bad['error'], good['error']), (1, 22, 0))
    equal(good['write']['total_ios'], 16)
    # who does not see the table is told
    why = 'sluice fio: jobs.fio:1: job bad needs a size, since nothing does not exist\n'
    equal(done.err, why)
    equal(sluice('fio', 'jobs.fio', '-o', 'out').err, why)


program.main(globals())
