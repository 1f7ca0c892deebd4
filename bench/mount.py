#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What programs get from `sluice mount`, beside what they get from the kernel, from bindfs, from a
FUSE server with nothing behind it, and from the plain directory; and what they should.

    mount.py SLUICE PASSTHROUGH [PART]...       (as root; ./dev bench mount [PART])

The parts are idle, reads, writes, names, p2 and postgres. All that is compared takes turns. The
last lines are a table of the figures that something is wanted of.
Everything lies on tmpfs: file systems are XFS on loop devices, and the slow disk of p2 and postgres
is `sluice device`. p2 and postgres change the kernel's limits on dirty memory meanwhile.
$SLUICE_BENCH_ROUNDS are the turns, $SLUICE_BENCH_SCALE is the scale of pgbench.
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time

import mount_postgres
import p2
from mount_rig import (clean_up_when_told_to_end, file_system, fio, in_turns, make_folder, note,
                       print_table, ratio_row, row, serve, serve_bindfs, serve_nothing, sh,
                       slow_disk, work_folder)

ROUNDS = int(os.environ.get('SLUICE_BENCH_ROUNDS', '5'))
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# No device behind what is to be in memory: dirty data stays dirty while it is measured.
IN_MEMORY = 'memory=2G,dirty_ratio=80,dirty_background_ratio=70'


# --- idle

def idle(bench):
    with file_system(bench.folder) as fs, contextlib.ExitStack() as stack:
        server = serve(stack, bench.sluice, make_folder(fs, 'source'), bench.mnt, 'memory=256M')
        with open(os.path.join(bench.mnt, 'file'), 'wb') as f:
            f.write(bytes(1 << 20))
        sh(bench.sluice, 'sync', bench.mnt)
        time.sleep(12)  # the last look at what has become old is behind it
        before = server.counts()
        time.sleep(10)
        after = server.counts()
    cpu_ms, switches = (after[0] - before[0]) / 1e6, after[1] - before[1]
    row('wakeups of an idle mount in 10 s', switches, '0', switches == 0)
    row('CPU time of it, ms', '%.3f' % cpu_ms, '0', cpu_ms == 0)


# --- reads

def read_rate(folder, *options):
    job = fio(folder, '--name=r', '--filename=file', '--size=256m', '--ioengine=psync',
              '--invalidate=0', *options, runtime=1)
    return job['read']['iops']


def reads(bench):
    with file_system(bench.folder) as fs, contextlib.ExitStack() as stack:
        with open(os.path.join(fs, 'file'), 'wb') as f:
            for _ in range(256):
                f.write(bytes(1 << 20))
        nothing = os.path.join(bench.folder, 'nothing')
        serve(stack, bench.sluice, fs, bench.mnt, 'memory=1G')
        serve_nothing(stack, bench.passthrough, nothing)
        sh('truncate', '-s', '256M', nothing + '/file')
        for folder in fs, bench.mnt, nothing:
            sh('dd', 'if=%s/file' % folder, 'of=/dev/null', 'bs=1M')
        for what, options in (('4 KiB read hits', ('--rw=randread', '--bs=4k')),
                              ('sequential cached reads, 128 KiB', ('--rw=read', '--bs=128k'))):
            ways = [(n, lambda p=p: read_rate(p, *options)) for n, p in
                    (('mount', bench.mnt), ('plain', fs), ('nothing', nothing))]
            rate = in_turns(ROUNDS, ways)
            ratio_row('%s: of the plain directory' % what, rate['mount'] / rate['plain'], 0.95)
            note('what the kernel keeps of a server with nothing behind it: %.2fx' % (
                rate['nothing'] / rate['plain']))


# --- writes

def write_rate(folder, *options):
    job = fio(folder, '--name=w', '--filename_format=f.$jobnum', '--size=64m', '--ioengine=psync',
              '--group_reporting', '--overwrite=1', '--fallocate=none', *options, runtime=1)
    return job['write']['iops']


def lay_out(folder):
    for i in range(4):
        with open(os.path.join(folder, 'f.%d' % i), 'wb') as f:
            for _ in range(64):
                f.write(bytes(1 << 20))


def writes(bench):
    with file_system(bench.folder) as fs, contextlib.ExitStack() as stack:
        nothing, bound = (os.path.join(bench.folder, n) for n in ('nothing', 'bound'))
        serve(stack, bench.sluice, make_folder(fs, 'source'), bench.mnt, IN_MEMORY)
        serve_nothing(stack, bench.passthrough, nothing)
        serve_bindfs(stack, make_folder(fs, 'bound'), bound)
        folders = (('mount', bench.mnt), ('nothing', nothing), ('bindfs', bound))
        for _, folder in folders:
            lay_out(folder)
        for writers in 1, 4:
            for what, options in (('1 MiB sequential writes', ('--rw=write', '--bs=1m')),
                                  ('4 KiB random overwrites', ('--rw=randwrite', '--bs=4k'))):
                rate = in_turns(ROUNDS, [
                    (n, lambda p=p: write_rate(p, '--numjobs=%d' % writers, *options))
                    for n, p in folders])
                what = '%s, %d writer%s: of ' % (what, writers, 's' * (writers > 1))
                ratio_row(what + 'nothing behind', rate['mount'] / rate['nothing'], 0.8)
                ratio_row(what + 'bindfs', rate['mount'] / rate['bindfs'], 2)
                note('nothing behind it is %.2fx of bindfs; a write takes %.1f µs' % (
                    rate['nothing'] / rate['bindfs'], writers * 1e6 / rate['mount']))


# --- names: programs that make many files

def dbench(folder, _):
    out = sh('dbench', '-t', '3', '-D', folder, '1')
    return float(re.search(r'Throughput ([\d.]+)', out).group(1))


def rate_of(*words, **options):
    begun = time.monotonic()
    sh(*words, **options)
    return 1 / (time.monotonic() - begun)


def fs_mark(folder, _):
    # it takes short names only
    return rate_of('fs_mark', '-d', '.', '-n', '2000', '-s', '16384', '-t', '1', '-S', '0', '-k',
                   '-l', os.devnull, cwd=folder)


def untar(folder, material):
    return rate_of('tar', '-xf', os.path.join(material, 'tree.tar'), '-C', folder)


def git_clone(folder, material):
    return rate_of('git', 'clone', '-q', '--no-hardlinks', os.path.join(material, 'tree.git'),
                   os.path.join(folder, 'clone'))


def prepare_material(folder):
    """A repository of this project's files in three copies, and an archive of them."""
    tree, git = make_folder(folder, 'tree'), os.path.join(folder, 'tree.git')
    listed = sh('git', '-C', ROOT, 'ls-files', '-z').split('\0')
    for copy in 'a', 'b', 'c':
        for name in filter(None, listed):
            if os.path.isfile(os.path.join(ROOT, name)):
                make_folder(tree, copy, os.path.dirname(name))
                shutil.copy(os.path.join(ROOT, name), os.path.join(tree, copy, name))
    sh('tar', '-cf', os.path.join(folder, 'tree.tar'), '-C', tree, '.')
    author = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost']
    sh('git', 'init', '-q', tree)
    sh('git', '-C', tree, 'add', '.')
    sh('git', *author, '-C', tree, 'commit', '-q', '-m', 'tree')
    sh('git', 'clone', '-q', '--bare', tree, git)
    shutil.rmtree(tree)


def in_fresh_folder(work, top, material):
    folder = make_folder(top, 'work')
    try:
        return work(folder, material)
    finally:
        shutil.rmtree(folder)


def names(bench):
    material = make_folder(bench.folder, 'material')
    prepare_material(material)
    with file_system(bench.folder) as fs, contextlib.ExitStack() as stack:
        bound = os.path.join(bench.folder, 'bound')
        serve(stack, bench.sluice, make_folder(fs, 'source'), bench.mnt, 'memory=1G')
        serve_bindfs(stack, make_folder(fs, 'bound'), bound)
        folders = (('mount', bench.mnt), ('bindfs', bound), ('plain', make_folder(fs, 'plain')))
        for work in dbench, fs_mark, untar, git_clone:
            rate = in_turns(ROUNDS, [
                (n, lambda p=p: in_fresh_folder(work, p, material)) for n, p in folders])
            ratio_row('%s: of bindfs' % work.__name__, rate['mount'] / rate['bindfs'], 2)
            note('of the plain directory: mount %.2fx, bindfs %.2fx' % (
                rate['mount'] / rate['plain'], rate['bindfs'] / rate['plain']))


# --- P2

def job_file(name):
    return os.path.join(p2.JOBS, name + '.fio')


def overwrite_at_random(folder, load):
    fio(folder, job_file('history'))
    if load:
        fio(folder, job_file('load'))
    write = fio(folder, job_file('randwrite'))['write']
    return write['iops'], write['clat_ns']['percentile']['99.000000'] / 1e6


def p2_case(bench, mounted, load):
    with slow_disk(bench.sluice, bench.folder) as disk, contextlib.ExitStack() as stack:
        disk.up(p2.FAST_DISK, make=True)
        fio(disk.fs, job_file('lay-out'))
        disk.remount(p2.DISK)
        p2.put(p2.VM + 'drop_caches', 3)
        if mounted:
            serve(stack, bench.sluice, disk.fs, bench.mnt,
                  'memory=8G,dirty_bytes=%d,dirty_background_bytes=%d,device.max_io_kb=256' % (
                      p2.LIMIT, p2.BACKGROUND))
        return overwrite_at_random(bench.mnt if mounted else disk.fs, load)


def p2_part(bench):
    with p2.limits():
        for mounted in False, True:
            for load in False, True:
                iops, p99_ms = p2_case(bench, mounted, load)
                what = '%s, %s' % ('sluice mount' if mounted else 'kernel XFS',
                                   'after load' if load else 'cold')
                share = 100 * iops / p2.ASKED
                if mounted and load:
                    row(what + ': IOPS of those asked', '%.1f %%' % share, '>= 99 %', share >= 99)
                    row(what + ': p99, ms', '%.3f' % p99_ms, '< 1', p99_ms < 1)
                else:
                    note('%s: %.1f %% of the IOPS asked, p99 %.3f ms' % (what, share, p99_ms))


# --- all

PARTS = {'idle': (idle, 1), 'reads': (reads, 2), 'writes': (writes, 4), 'names': (names, 4),
         'p2': (p2_part, p2.FREE_GIB), 'postgres': (mount_postgres.run, mount_postgres.FREE_GIB)}
PACKAGES = {'bindfs': 'bindfs', 'dbench': 'dbench', 'fs_mark': 'fsmark', 'fio': 'fio',
            'git': 'git', 'mkfs.xfs': 'xfsprogs', mount_postgres.PGBENCH: 'postgresql-15'}


class Bench:
    def __init__(self, sluice, passthrough, folder):
        self.sluice, self.passthrough, self.folder = sluice, passthrough, folder
        self.mnt = os.path.join(folder, 'mnt')


def why_not(free_gib):
    if os.geteuid() != 0:
        return 'only root may mount'
    if not os.path.exists('/dev/fuse'):
        return 'there is no /dev/fuse'
    missing = sorted({package for tool, package in PACKAGES.items() if not shutil.which(tool)})
    if missing:
        return 'packages are missing: apt-get install ' + ' '.join(missing)
    if p2.available_gib() < free_gib:
        return 'it needs %d GiB of free memory, and %.1f are' % (free_gib, p2.available_gib())
    return ''


def main():
    if len(sys.argv) < 3 or any(word not in PARTS for word in sys.argv[3:]):
        sys.exit('usage: mount.py SLUICE PASSTHROUGH [%s]...' % '|'.join(PARTS))
    clean_up_when_told_to_end()
    sluice, passthrough = (os.path.abspath(path) for path in sys.argv[1:3])
    for name in sys.argv[3:] or PARTS:
        part, free_gib = PARTS[name]
        reason = why_not(free_gib)
        print('%s%s' % (name, ': skipped: ' + reason if reason else ''), flush=True)
        if reason:
            continue
        begun = time.monotonic()
        with work_folder() as folder:
            part(Bench(sluice, passthrough, folder))
        note('%.0f s' % (time.monotonic() - begun))
    print_table()


if __name__ == '__main__':
    main()
