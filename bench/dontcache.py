#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""DONTCACHE writes: by our cache, and by the kernel's with and without RWF_DONTCACHE.

    dontcache.py SLUICE        (./dev bench dontcache)

The same jobs by `sluice run`, the ways taking turns: a stream of 1 MiB blocks, random blocks of 4
KiB, and four streams at once, fsync included; then the stream beside a reader of another file. Figures
are medians of the rounds. The footprint is what the system's memory holds for it at most: pages of the files in
the kernel's cache, looked at by mincore(2) as often as can be, and the program's own. CPU
time is that of the program and of all kernel threads meanwhile. The files are in
$SLUICE_BENCH_DIR, or /var/tmp.
"""
import ctypes
import glob
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from kernel_cpu import kernel_threads_s, kernel_threads_since

ROUNDS = int(os.environ.get('SLUICE_BENCH_ROUNDS', '5'))
SIZE_MIB = int(os.environ.get('SLUICE_BENCH_MIB', '1024'))
PAGE = os.sysconf('SC_PAGE_SIZE')
JOBS = {
    'stream': '[w]\nfilename=f0\nsize={0}m\nrw=write\nbs=1m\n',
    'random': '[w]\nfilename=f0\nsize={0}m\nio_size={1}m\nrw=randwrite\nbs=4k\n',
    'four': '[w]\nfilename_format=f$jobnum\nnumjobs=4\ngroup_reporting\nsize={2}m\nrw=write\nbs=1m\n',
    'beside': '[w]\nfilename=f0\nsize={0}m\nrw=write\nbs=1m\nexitall\n'
              '[r]\nfilename=r\nsize={2}m\nrw=read\nbs=128k\ntime_based\nruntime=600\n',
}
HEAD = '[global]\nthread\nend_fsync=1\ndirectory={}\n{}\n'
libc = ctypes.CDLL(None, use_errno=True)


def resident(path):
    """Bytes of a file in the kernel's cache."""
    try:
        size = os.path.getsize(path)
        if not size:
            return 0
        with open(path, 'rb') as f:
            with mmap.mmap(f.fileno(), size, mmap.MAP_SHARED, mmap.PROT_READ) as m:
                pages = (size + PAGE - 1) // PAGE
                seen = (ctypes.c_ubyte * pages)()
                # the address of a read-only map, which ctypes does not tell
                libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
                at = memory_of(m)
                if libc.mincore(at, size, ctypes.byref(seen)):
                    return 0
                return bytes(seen).count(1) * PAGE
    except (FileNotFoundError, ValueError):
        return 0


class Buffer(ctypes.Structure):
    _fields_ = [('buf', ctypes.c_void_p), ('obj', ctypes.py_object), ('len', ctypes.c_ssize_t),
                ('itemsize', ctypes.c_ssize_t), ('readonly', ctypes.c_int), ('ndim', ctypes.c_int),
                ('format', ctypes.c_char_p), ('shape', ctypes.c_void_p),
                ('strides', ctypes.c_void_p), ('suboffsets', ctypes.c_void_p),
                ('internal', ctypes.c_void_p)]


def memory_of(m):
    view = Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(m), ctypes.byref(view), 0)
    at = view.buf
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    return at


def own_memory(pid):
    try:
        with open('/proc/%d/statm' % pid) as f:
            return int(f.read().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def run(words, folder):
    """Runs a program: its JSON, CPU seconds, and the most memory it took anywhere."""
    before = kernel_threads_s()
    out = tempfile.TemporaryFile()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out)
    most = 0
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        files = sum(resident(p) for p in glob.glob(os.path.join(folder, 'f*')))
        most = max(most, files + own_memory(process.pid))
        time.sleep(0.02)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    out.seek(0)
    text = out.read().decode()
    if status:
        sys.exit('dontcache: failed: %s\n%s' % (' '.join(words), text))
    threads = kernel_threads_since(before)
    return json.loads(text), used.ru_utime + used.ru_stime + threads, most


def measure(sluice, folder, found, turn):
    ours = [sluice, 'run', '--output-format=json', '-q']
    ways = (('ours', 'uncached=1', ours + ['--engine', 'sluice', '--memory', '512M']),
            ('dontcache', 'uncached=1', ours + ['--engine', 'posix']),
            ('buffered', 'uncached=0', ours + ['--engine', 'posix']))
    ways = ways[turn % 3:] + ways[:turn % 3]  # each comes after each
    for job, text in JOBS.items():
        for name, flag, command in ways:
            for path in glob.glob(os.path.join(folder, 'f*')):
                os.unlink(path)
            os.sync()  # what that leaves to do is not the next one's
            path = os.path.join(folder, 'job.fio')
            with open(path, 'w') as f:
                f.write(HEAD.format(folder, flag) +
                        text.format(SIZE_MIB, SIZE_MIB // 8, SIZE_MIB // 4))
            result, cpu_s, most = run(command + [path], folder)
            write = result['jobs'][0]['write']
            mib = write['io_bytes'] / (1 << 20)
            seconds = result['jobs'][0]['job_runtime'] / 1000
            if job == 'four':
                seconds /= 4
            clat = write['clat_ns']['percentile']
            reads = result['jobs'][-1]['read']['bw'] / 1024 if job == 'beside' else 0
            found.setdefault((job, name), []).append(
                (mib / seconds, clat['99.000000'] / 1e6, clat['99.900000'] / 1e6,
                 cpu_s * 1024 / mib, most / (1 << 20), reads))


def main():
    folder = tempfile.mkdtemp(prefix='sluice-dontcache-',
                              dir=os.environ.get('SLUICE_BENCH_DIR', '/var/tmp'))
    found = {}
    try:
        with open(os.path.join(folder, 'r'), 'wb') as f:
            for _ in range(SIZE_MIB // 4):
                f.write(os.urandom(1 << 20))
        for turn in range(ROUNDS):
            measure(sys.argv[1], folder, found, turn)
    finally:
        shutil.rmtree(folder)
    for job in JOBS:
        for name in 'ours', 'dontcache', 'buffered':
            speed, p99, p999, cpu, most, reads = (
                statistics.median(v) for v in zip(*found[job, name]))
            print('%-7s %-9s  %6.0f MiB/s  p99 %7.2f ms  p99.9 %7.2f ms  %.3f CPU s a GiB  '
                  'at most %5.0f MiB of memory%s' % (
                      job, name, speed, p99, p999, cpu, most,
                      '  reads %.0f MiB/s' % reads if reads else ''))


if __name__ == '__main__':
    main()
