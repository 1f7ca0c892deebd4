#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A large file, written and read from end to end: through our cache, through the kernel's, and past
both.

    stream.py SLUICE        (as root, to begin reads cold; ./dev bench stream)

Each round writes 4 GiB in blocks of 1 MiB, fsync included, and reads them back cold in blocks of
128 KiB, by each of three: `sluice run` with our cache, `sluice run` with system calls, and fio
with O_DIRECT and eight I/Os in flight. The rounds take turns, so that what else the machine does
meets all alike; figures are medians. CPU time is that of the program and of all kernel threads
meanwhile, for the kernel's cache writes by those. The files are in $SLUICE_BENCH_DIR, or /var/tmp.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from kernel_cpu import kernel_threads_s, kernel_threads_since

ROUNDS = int(os.environ.get('SLUICE_BENCH_ROUNDS', '5'))
SIZE_MIB = int(os.environ.get('SLUICE_BENCH_MIB', '4096'))
JOB = '[stream]\nfilename=%s\nsize=%dM\nrw=%s\nbs=%s\nthread\n%s\n'
# What is compared is streaming, not limits: a fifth of so small a cache is dirty data of some 30 ms.
OURS = ['--engine', 'sluice', '--memory', '512M', '-s', 'vm.dirty_ratio=70', '-s',
        'read_ahead_kb=4096']


def run(words):
    """Runs a program: its JSON, and the CPU seconds that it and the kernel's threads took."""
    before = kernel_threads_s()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit('stream: failed: %s' % ' '.join(words))
    threads = kernel_threads_since(before)
    return json.loads(out), used.ru_utime + used.ru_stime + threads


def drop_caches():
    subprocess.run(['sync'], check=True)
    with open('/proc/sys/vm/drop_caches', 'w') as f:
        f.write('3\n')


def ways(sluice):
    """Of each way its name, what it adds to the job, and its program with options."""
    ours = [sluice, 'run', '--output-format=json', '-q']
    yield 'sluice', '', ours + OURS
    yield 'kernel', '', ours + ['--engine', 'posix']
    if shutil.which('fio'):
        yield 'direct', 'direct=1\nioengine=libaio\niodepth=8', ['fio', '--output-format=json']


def measure(sluice, folder, found):
    job, file = os.path.join(folder, 'job.fio'), os.path.join(folder, 'file')
    for name, extra, command in ways(sluice):
        if os.path.exists(file):
            os.unlink(file)
        for rw, bs, own in ('write', '1M', 'end_fsync=1'), ('read', '128k', 'invalidate=0'):
            with open(job, 'w') as f:
                f.write(JOB % (file, SIZE_MIB, rw, bs, own + '\n' + extra))
            drop_caches()
            result, cpu_s = run(command + [job])
            seconds = result['jobs'][0]['job_runtime'] / 1000
            found.setdefault((name, rw), []).append((SIZE_MIB / seconds, cpu_s * 1024 / SIZE_MIB))


def main():
    sluice = sys.argv[1]
    if os.geteuid():
        sys.exit('stream: only root can drop the kernel\'s caches')
    folder = tempfile.mkdtemp(prefix='sluice-stream-',
                              dir=os.environ.get('SLUICE_BENCH_DIR', '/var/tmp'))
    found = {}
    try:
        for _ in range(ROUNDS):
            measure(sluice, folder, found)
    finally:
        shutil.rmtree(folder)
    for rw in 'write', 'read':
        speed = {n: statistics.median(v[0] for v in found[n, rw]) for n, r in found if r == rw}
        cpu = {n: statistics.median(v[1] for v in found[n, rw]) for n, r in found if r == rw}
        best = max(s for n, s in speed.items() if n != 'sluice')
        for name in speed:
            print('%-5s %4d MiB  %-6s  %6.0f MiB/s (%.2fx of the best other)  '
                  '%.3f CPU s a GiB (%.2fx of the kernel\'s)' % (
                      rw, SIZE_MIB, name, speed[name], speed[name] / best, cpu[name],
                      cpu[name] / cpu['kernel']))


if __name__ == '__main__':
    main()
