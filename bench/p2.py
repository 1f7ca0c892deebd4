#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""P2 at an eighth of its size, for real: 32 writers of random 4 KiB blocks on a disk of 3,000 I/Os
a second, through the kernel and through our cache, beside what the lab predicts of each.

    p2.py SLUICE            (as root; ./dev bench p2)

The disk is `sluice device`, its bytes on tmpfs, with XFS on a loop device; it is made anew for each
case. The limits on dirty memory are the same for all. Ten minutes at most; the machine needs
18 GiB of free memory.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
JOBS = os.path.join(ROOT, 'experiments', 'linux-6.18')
EXPERIMENT = os.path.join(ROOT, 'experiments', 'p2-eighth.ini')
BACKGROUND, LIMIT = 1560000000, 3120000000
ASKED = 32 * 312
FREE_GIB = 18
WINDOW_S = 30
DISK = ['--iops', '3000', '--mbps', '700', '--latency-us', '300']
FAST_DISK = ['--iops', '1000000', '--mbps', '2000', '--latency-us', '20']
VM = '/proc/sys/vm/'
PAIRS = (('dirty_bytes', 'dirty_ratio'), ('dirty_background_bytes', 'dirty_background_ratio'))

# Of the lab's cases: what runs, and the options of it.
OURS = ['--engine', 'sluice', '--memory', '8G', '-s', 'vm.dirty_bytes=%d' % LIMIT,
        '-s', 'vm.dirty_background_bytes=%d' % BACKGROUND,
        # what the block layer makes of an I/O: it decides how large folios are that are read ahead
        '-s', 'device.max_io_kb=256']
CASES = (
    ('kernel-control', ['history', 'randwrite'], ['--engine', 'posix']),
    ('kernel', ['history', 'load', 'randwrite'], ['--engine', 'posix']),
    ('folio', ['history', 'load', 'randwrite'], OURS + ['-s', 'accounting=folio']),
    ('page', ['history', 'load', 'randwrite'], OURS + ['-s', 'accounting=page']),
    ('debt', ['history', 'load', 'randwrite'], OURS),
)


def sh(*words, **options):
    return subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          **options).stdout.decode().strip()


def get(path):
    with open(path) as f:
        return f.read().strip()


def put(path, value):
    with open(path, 'w') as f:
        f.write(str(value))


def available_gib():
    for line in get('/proc/meminfo').splitlines():
        if line.startswith('MemAvailable:'):
            return int(line.split()[1]) / (1 << 20)
    return 0


def why_not():
    if os.geteuid() != 0:
        return 'only root may mount'
    if not os.path.exists('/dev/fuse'):
        return 'there is no /dev/fuse'
    for tool in ('mkfs.xfs', 'losetup', 'umount'):
        if not shutil.which(tool):
            return tool + ' is not installed'
    if available_gib() < FREE_GIB:
        return 'it needs %d GiB of free memory, and %.1f are' % (FREE_GIB, available_gib())
    return ''


@contextlib.contextmanager
def limits():
    """The kernel's limits are ours for the time being, then what they were."""
    before = {name: get(VM + name) for pair in PAIRS for name in pair}
    try:
        # the lower one first, so that it is below the other at any time
        put(VM + 'dirty_background_bytes', BACKGROUND)
        put(VM + 'dirty_bytes', LIMIT)
        yield
    finally:
        for in_bytes, ratio in PAIRS:
            name = in_bytes if before[in_bytes] != '0' else ratio
            put(VM + name, before[name])


class Disk:
    """A disk with XFS on it, below a folder on tmpfs. Whatever happens, it is taken down."""

    def __init__(self, sluice, folder):
        self.sluice, self.folder = sluice, folder
        self.image, self.dev, self.fs = (os.path.join(folder, n) for n in ('image', 'dev', 'fs'))
        self.server = self.loop = None
        os.mkdir(self.dev)
        os.mkdir(self.fs)

    def up(self, speed, make=False):
        self.server = subprocess.Popen([self.sluice, 'device', *speed, '--size', '9G', self.image,
                                        self.dev], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE)
        if not self.server.stdout.readline():
            raise SystemExit('p2: sluice device did not start')
        self.loop = sh('losetup', '--find', '--show', '--direct-io=on', self.dev + '/disk')
        queue = '/sys/block/%s/queue/' % os.path.basename(self.loop)
        put(queue + 'max_sectors_kb', 256)
        put(queue + 'read_ahead_kb', 128)
        if make:
            sh('mkfs.xfs', '-q', '-K', '-f', self.loop)
        sh('mount', self.loop, self.fs)

    def stats(self):
        return json.loads(get(self.dev + '/stats'))

    def down(self):
        """In order; what fails here is done as far as it can be."""
        def attempt(*words):
            # what a killed program had under way holds its files for a while
            for _ in range(100):
                if not subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL).returncode:
                    return
                time.sleep(0.2)
        if os.path.ismount(self.fs):
            attempt('find', self.fs, '-mindepth', '1', '-delete')  # else it would all be written
            attempt('umount', self.fs)
        if self.loop:
            attempt('losetup', '-d', self.loop)
            self.loop = None
        if self.server:
            attempt('umount', self.dev)
            try:
                self.server.wait(20)
            except subprocess.TimeoutExpired:
                self.server.kill()
                attempt('umount', '-l', self.dev)
            self.server.stdout.close()
            self.server = None

    def remount(self, speed):
        """The same file system on another disk."""
        sh('umount', self.fs)
        sh('losetup', '-d', self.loop)
        sh('umount', self.dev)
        self.server.wait()
        self.server.stdout.close()
        self.up(speed)


def run_jobs(disk, jobs, options):
    """The report of the last job file, and the writes a second that reached the disk in the last
    half minute of it. What is dirty then need not be written: the program is ended as soon as its
    report is there."""
    report = os.path.join(disk.folder, 'report.json')
    if os.path.exists(report):
        os.unlink(report)
    child = subprocess.Popen([disk.sluice, 'run', '-q', *options, '--output-format=json',
                              '--output', report, *(os.path.join(JOBS, j + '.fio') for j in jobs)],
                             cwd=disk.fs, stdin=subprocess.DEVNULL)
    seen = []
    try:
        while child.poll() is None and not os.path.exists(report):
            seen.append((time.monotonic(), disk.stats()['writes']))
            time.sleep(0.2)
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
        child.wait()
    if not os.path.exists(report):
        raise SystemExit('p2: sluice run ended with status %d' % child.returncode)
    with open(report) as f:
        result = json.load(f)
    last = [s for s in seen if s[0] > seen[-1][0] - WINDOW_S]
    rate = (last[-1][1] - last[0][1]) / max(last[-1][0] - last[0][0], 1)
    return result[-1] if isinstance(result, list) else result, rate


def measure(sluice, folder, jobs, options):
    disk = Disk(sluice, tempfile.mkdtemp(dir=folder))
    try:
        disk.up(FAST_DISK, make=True)
        run_jobs(disk, ['lay-out'], ['--engine', 'posix'])
        disk.remount(DISK)
        put(VM + 'drop_caches', 3)
        result, rate = run_jobs(disk, jobs, options)
        write = result['jobs'][0]['write']
    finally:
        disk.down()
        shutil.rmtree(disk.folder, ignore_errors=True)
    return {'iops': write['iops'], 'p99_ms': write['clat_ns']['percentile']['99.000000'] / 1e6,
            'max_ms': write['clat_ns']['max'] / 1e6, 'disk_writes': rate}


def predictions(sluice):
    result = json.loads(sh(sluice, 'lab', EXPERIMENT, '-q', '--json', '-'))
    return {c['case']: c['predicted'] for c in result['cases']}


def print_row(name, measured, predicted):
    ratio = measured['iops'] / predicted['write_iops'] if predicted['write_iops'] else 0
    print('%-15s %7.0f %5.1f%% %7.0f %6.3f %9.3f %9.3f %9.1f %8.0f' % (
        name, measured['iops'], 100 * measured['iops'] / ASKED, predicted['write_iops'], ratio,
        measured['p99_ms'], predicted['write_p99_ms'], measured['max_ms'],
        measured['disk_writes']), flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit('usage: p2.py SLUICE [CASE]...')
    sluice, only = os.path.abspath(sys.argv[1]), sys.argv[2:]
    reason = why_not()
    if reason:
        print('skipped: ' + reason)
        return
    predicted = predictions(sluice)
    print('%d writes a second asked of a disk of 3,000\n' % ASKED)
    print('%-15s %7s %6s %7s %6s %9s %9s %9s %8s' % (
        'case', 'IOPS', 'asked', 'lab', 'ratio', 'p99 ms', 'lab', 'max ms', 'disk w/s'), flush=True)
    folder = tempfile.mkdtemp(prefix='sluice-p2-', dir='/dev/shm')
    try:
        with limits():
            for name, jobs, options in CASES:
                if not only or name in only:
                    print_row(name, measure(sluice, folder, jobs, options), predicted[name])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
