# SPDX-License-Identifier: MIT
"""sluice run as people use it: fio job files really executed, through our cache and the kernel's."""
import itertools
import json
import os
import shutil
import signal
import subprocess
import time

import program
from program import SLUICE, Skip, contains, equal, refused, sluice

ENGINES = ('sluice', 'posix')
VERIFIED = '''\
[global]
directory=d
size=2m
verify=crc32c
[random]
rw=randwrite
numjobs=3
group_reporting
[behind]
stonewall
rw=write
bs=64k
filename=f
end_fsync=1
[again]
stonewall
rw=read
filename=f
bs=64k
'''


def write(path, text):
    with open(path, 'w') as f:
        f.write(text)


def run(engine, *words):
    """One engine on job files; our cache small, so that it has to write and reclaim."""
    memory = ('--memory=16M',) if engine == 'sluice' else ()
    return sluice('run', '--engine', engine, *memory, *words)


def report(engine, *words):
    done = run(engine, *words, '--output-format=json', '-q')
    equal(done.err, '')
    return done.status, json.loads(done.out)


def test_what_is_written_is_read_back_and_stays():
    write('jobs.fio', VERIFIED)
    for engine in ENGINES:
        os.mkdir('d')
        status, result = report(engine, 'jobs.fio')
        equal((engine, status), (engine, 0))
        random, behind, again = result['jobs']
        equal([(j['jobname'], j['error']) for j in result['jobs']],
              [('random', 0), ('behind', 0), ('again', 0)])
        equal((random['write']['total_ios'], random['read']['total_ios']), (1536, 1536))
        equal((behind['write']['io_bytes'], behind['write']['total_ios']), (2 << 20, 32))
        equal(again['read']['total_ios'], 32)
        assert random['write']['clat_ns']['max'] > 0, random
        # in the folder, as large as they should be
        equal(sorted(os.listdir('d')), ['f', 'random.0.0', 'random.1.0', 'random.2.0'])
        equal({os.path.getsize('d/' + name) for name in os.listdir('d')}, {2 << 20})
        # and the other engine finds there what this one wrote
        write('check.fio', VERIFIED.split('[random]')[0] + '[c]\nrw=read\nfilename=f\nbs=64k\n'
              '[r]\nrw=read\nfilename_format=random.$jobnum.0\nnumjobs=3\n')
        for other in ENGINES:
            equal(run(other, 'check.fio', '-q').status, 0)
        with open('d/f', 'r+b') as f:
            f.seek(1 << 20)
            f.write(b'no')
        done = run(engine, 'check.fio', '-q')
        equal(done.status, 1)
        contains(done.out, 'failed: verify d/f at 1048576: ')
        shutil.rmtree('d')


def test_mixed_jobs_with_everything():
    """Each kind of call once, on files that all jobs share."""
    write('jobs.fio', '''\
[global]
directory=.
filename=shared
size=1m
bs=4k
[lay]
rw=randrw
overwrite=1
fsync=16
fdatasync=5
sync_file_range=write:3
[deep]
rw=randread
ioengine=io_uring
iodepth=8
fadvise_hint=random
[bs]
rw=randwrite
bsrange=512-8k
bs_unaligned=1
sync=dsync
number_ios=40
[own]
rw=write
filename=own
fallocate=keep
fsync_on_close=1
unlink=1
pre_read=0
[think]
rw=randread
thinktime=100
number_ios=50
[direct]
stonewall
rw=randwrite
direct=1
number_ios=20
''')
    for engine in ENGINES:
        status, result = report(engine, 'jobs.fio')
        equal([(j['jobname'], j['error'], j.get('error_text')) for j in result['jobs']],
              [(n, 0, None) for n in ('lay', 'deep', 'bs', 'own', 'think', 'direct')])
        equal(status, 0)
        jobs = {j['jobname']: j for j in result['jobs']}
        equal(jobs['lay']['read']['total_ios'] + jobs['lay']['write']['total_ios'], 256)
        assert jobs['lay']['sync']['total_ios'] > 10, jobs['lay']['sync']
        equal(jobs['deep']['read']['total_ios'], 256)
        equal(jobs['bs']['write']['total_ios'], 40)
        equal(jobs['think']['read']['total_ios'], 50)
        equal(jobs['direct']['write']['io_bytes'], 20 * 4096)
        equal(sorted(os.listdir('.')), ['jobs.fio', 'shared'])
        os.unlink('shared')


def test_rates_and_runtimes_are_kept():
    """Counted, not timed: 200 ms at 1,000 a second are 200 I/Os, were they slow or not."""
    write('jobs.fio', '[j]\nfilename=f\nsize=1m\nrw=randwrite\nrate_iops=1000\nnumber_ios=100\n'
                      '[k]\nfilename=g\nsize=64k\nrw=write\ntime_based\nruntime=200ms\n'
                      'rate_iops=500\n')
    for engine in ENGINES:
        status, result = report(engine, 'jobs.fio')
        equal(status, 0)
        j, k = result['jobs']
        equal(j['write']['total_ios'], 100)
        # the last of 100 is due after 99 ms
        assert j['write']['runtime'] >= 98, j['write']['runtime']
        assert 1 <= k['write']['total_ios'] <= 101, k['write']['total_ios']
        assert k['write']['runtime'] >= 198, k['write']['runtime']


def test_several_files_share_a_cache():
    write('a.fio', '[a]\nfilename=f\nsize=1m\nrw=write\nend_fsync=1\n')
    write('b.fio', '[b]\nfilename=f\nrw=read\ninvalidate=0\n[c]\nnew_group\nfilename=f\nrw=read\n')
    for engine in ENGINES:
        status, result = report(engine, 'a.fio', 'b.fio')
        equal(status, 0)
        equal([[j['jobname'] for j in r['jobs']] for r in result], [['a'], ['b', 'c']])
        equal(result[1]['jobs'][0]['read']['total_ios'], 256)
        done = run(engine, 'a.fio', 'b.fio')
        equal((done.status, done.err), (0, ''))
        headings = [line for line in done.out.splitlines() if ' on this machine: ' in line]
        equal([h.split()[0] for h in headings], ['a.fio', 'b.fio'])
        assert all('engine ' + engine in h for h in headings), headings


def test_a_report_can_go_to_a_file_with_logs_beside():
    write('jobs.fio', '[j]\nfilename=f\nsize=64k\nrw=write\nwrite_lat_log\n')
    for engine in ENGINES:
        done = run(engine, 'jobs.fio', '--output=out.json', '--output-format=json')
        equal((done.status, done.out, done.err), (0, '', ''))
        with open('out.json') as f:
            equal(json.load(f)['jobs'][0]['write']['total_ios'], 16)
        equal(sorted(os.listdir('.')), ['f', 'j_clat.1.log', 'j_lat.1.log', 'jobs.fio',
                                        'out.json'])


def test_errors_can_be_gone_on_after():
    if not os.path.exists('/dev/full'):
        raise Skip('there is no /dev/full')
    text = '[j]\nfilename=/dev/full\nsize=64k\nrw=write\n'
    write('stop.fio', text)
    write('go.fio', text + 'ignore_error=,ENOSPC\n')
    done = run('posix', 'stop.fio')
    equal(done.status, 1)
    contains(done.out, 'failed: write /dev/full at 0: No space left on device')
    done = run('posix', 'stop.fio', '--output-format=json')
    equal((done.status, done.err),
          (1, 'sluice run: stop.fio:1: write /dev/full at 0: No space left on device\n'))
    status, result = report('posix', 'go.fio')
    job = result['jobs'][0]
    equal((status, job['error'], job['total_err'], job['first_error'],
           job['write']['total_ios']), (0, 28, 16, 28, 0))
    contains(run('posix', 'go.fio').out, 'went on after 16 errors, the first: write /dev/full')


def test_dontcache_or_a_reason_why_not():
    write('jobs.fio', '[j]\nfilename=f\nsize=1m\nrw=write\nuncached=1\n')
    done = run('posix', 'jobs.fio', '-q')
    if done.status:
        contains(done.out, 'failed: jobs.fio:5: uncached=1 is not possible for f: ')
    else:
        contains(done.out, ' write ')
    equal(run('sluice', 'jobs.fio', '-q').status, 0)


def test_an_interrupt_ends_the_jobs_and_reports():
    write('jobs.fio', '[j]\nfilename=f\nsize=1m\nrw=randwrite\ntime_based\nruntime=1000\n'
                      'rate_iops=1000\nwrite_iops_log=w\nlog_avg_msec=10\n'
                      '[later]\nstonewall\nfilename=g\nsize=1m\nrw=write\n')
    # timeout(1) sends its signal twice, to the program and to its group
    for engine, number, times in itertools.product(ENGINES, (signal.SIGINT, signal.SIGTERM), (1, 2)):
        child = subprocess.Popen([SLUICE, 'run', '--engine', engine, 'jobs.fio'],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        try:
            # it has begun once its file is there; then it has caught the signal, too
            while not os.path.exists('f') and child.poll() is None:
                time.sleep(0.01)
            for _ in range(times):
                child.send_signal(number)
            out, err = child.communicate()
        finally:
            child.kill()
            child.wait()
        equal(child.returncode, 1)
        equal(err.decode(), 'sluice run: stopped before all was done\n')
        contains(out.decode(), '\nlater ')
        contains(out.decode(), ' no I/O')
        os.unlink('f')


def test_what_makes_no_sense_is_refused():
    write('jobs.fio', '[j]\nfilename=f\nsize=4k\nrw=read\n')
    write('bad.fio', '[j]\nrw=raed\n')
    write('nowhere.fio', '[j]\ndirectory=no/where\nsize=4k\nrw=read\n')
    write('inside.fio', '[j]\nfilename=no/f\nsize=4k\nrw=read\n')
    refused(['run'], 'sluice run: which job file? "sluice run --help" says more')
    refused(['run', 'none.fio'], 'sluice run: none.fio: No such file or directory')
    refused(['run', 'jobs.fio', '--engine=kernel'],
            'sluice run: --engine cannot be "kernel", only sluice or posix')
    refused(['run', 'jobs.fio', '--memory=much'],
            'sluice run: --memory cannot be "much", only a size of at least 16M')
    refused(['run', 'jobs.fio', '--output-format=terse'],
            'sluice run: --output-format cannot be "terse", only normal or json')
    refused(['run', 'jobs.fio', '-p', 'sluce'],
            'sluice run: unknown policy "sluce"; did you mean "sluice"?')
    refused(['run', 'jobs.fio', '--output', 'jobs.fio'],
            'sluice run: --output jobs.fio: is in use already, which must not be overwritten')
    # nothing runs if one of several is wrong
    done = sluice('run', '--engine=posix', 'jobs.fio', 'bad.fio')
    equal(done.status, 2)
    contains(done.err, 'sluice run: bad.fio:2: rw=raed is unknown')
    for engine in ENGINES:
        refused(['run', '--engine', engine, 'nowhere.fio'],
                'sluice run: nowhere.fio:2: directory: the folder no/where/ of job j: '
                'No such file or directory')
        refused(['run', '--engine', engine, 'inside.fio'],
                'sluice run: inside.fio:2: filename: the folder no/ of job j: '
                'No such file or directory')
    refused(['run', 'jobs.fio', '-s', 'vm.dirty_byte=1'],
            'sluice run: -s vm.dirty_byte=1: unknown setting "vm.dirty_byte"; did you mean '
            '"vm.dirty_bytes"?')
    equal(sorted(os.listdir('.')), ['bad.fio', 'inside.fio', 'jobs.fio', 'nowhere.fio'])


def test_what_is_run_for_real_is_predicted():
    """bench/p2.py measures the cases of this experiment: they must be there, and say the same as in
    the large."""
    experiment = os.path.join(program.ROOT, 'experiments', 'p2-eighth.ini')
    done = sluice('lab', experiment, '-q', '--json', '-')
    equal((done.status, done.err), (0, ''))
    iops = {c['case']: c['predicted']['write_iops'] for c in json.loads(done.out)['cases']}
    equal(sorted(iops), ['debt', 'folio', 'kernel', 'kernel-control', 'page'])
    for case in ('kernel-control', 'page', 'debt'):
        assert abs(iops[case] - 9984) < 1, iops
    for case in ('kernel', 'folio'):
        assert 3000 < iops[case] < 4000, iops


def test_notes_and_reading_only():
    write('jobs.fio', '[j]\nfilename=f\nsize=$ncpus*4k\nrw=read\ndisk_util=0\n')
    done = sluice('run', 'jobs.fio', '--parse-only')
    equal((done.status, done.out), (0, ''))
    contains(done.err, 'note: jobs.fio:5: disk_util has no effect here')
    equal(os.listdir('.'), ['jobs.fio'])


def test_maps_are_the_kernels():
    write('jobs.fio', '[j]\nfilename=f\nsize=256k\nrw=randwrite\nioengine=mmap\nverify=crc32c\nfsync=8\n')
    done = sluice('run', 'jobs.fio', '--engine', 'posix', '--output-format=json')
    equal((done.status, done.err), (0, ''))
    job = json.loads(done.out)['jobs'][0]
    equal((job['write']['total_ios'], job['read']['total_ios']), (64, 64))
    done = sluice('run', 'jobs.fio', '--output-format=json')
    equal(done.status, 0)
    contains(done.err, 'note: jobs.fio:5: ioengine=mmap reads and writes as psync does')
    equal(json.loads(done.out)['jobs'][0]['write']['total_ios'], 64)
    write('small.fio', '[j]\nfilename=f\nsize=256k\nrw=write\nbs=512\nioengine=mmap\nfsync=8\n')
    done = sluice('run', 'small.fio', '--engine', 'posix')
    contains(done.err, 'ioengine=mmap with direct, fsync or fdatasync needs blocks of whole pages')


def test_a_job_may_be_a_tenants():
    os.mkdir('d')
    write('jobs.fio', '[one]\ndirectory=d\nsize=16m\nrw=write\nbs=64k\ncgroup=batch\n')
    most = {}
    # nothing is written before a limit asks for it
    lazy = ('-s', 'vm.dirty_writeback_centisecs=0', '-s', 'vm.dirty_ratio=90',
            '-s', 'vm.dirty_background_ratio=80')
    for setting in 'dirty_bytes=2M', 'floor=0':
        done = sluice('run', 'jobs.fio', '--memory=64M', *lazy, '-s', 'tenant.batch.' + setting,
                      '--output-format=json', '-q')
        equal((done.status, done.err), (0, ''))
        most[setting] = json.loads(done.out)['sluice cache']['max_dirty_bytes']
        equal(os.path.getsize('d/one.0.0'), 16 << 20)
        os.unlink('d/one.0.0')
    equal(most['floor=0'], 16 << 20)
    # a step of the write is let in while there is any room
    assert most['dirty_bytes=2M'] <= 4 << 20, most


def test_tenants_that_cannot_be_are_refused():
    os.mkdir('d')
    write('jobs.fio', '[one]\ndirectory=d\nsize=1m\nrw=write\ncgroup=batch\n')
    for words, why in (
            ((), 'jobs.fio:5: cgroup: job one is of tenant "batch", but there is none'),
            (('-s', 'tenant.other.floor=1M'),
             'jobs.fio:5: cgroup: job one is of tenant "batch", but there is none'),
            (('--engine=posix',), 'jobs.fio:5: the engine posix cannot do cgroup in job one'),
            (('-s', 'tenant.batch.path=/x'),
             '-s tenant.batch.path=/x: whose a job is says its option cgroup; a tenant has figures '
             'here, as tenant.NAME.dirty_bytes=64M'),
            (('-s', 'tenant.batch.dirty_bytes=1'),
             '-s tenant.batch.dirty_bytes=1: tenant.batch.dirty_bytes cannot be "1", only a size of '
             'at least 8192'),
            (('-s', 'tenant.batch'),
             '-s tenant.batch: "tenant.batch": tenant.NAME.KEY=VALUE is needed, with a NAME of 1 to '
             '31 letters, digits, "-" and "_"')):
        refused(['run', 'jobs.fio', *words], 'sluice run: ' + why)
    equal(os.listdir('d'), [])


program.main(globals())
