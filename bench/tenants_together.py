#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tenants of a mount beside each other, with real threads on a disk of known speed.

    tenants_together.py SLUICE        (as root; ./dev bench tenants)

The disk is `sluice device`, its bytes on tmpfs, with XFS on a loop device. Two users write, each as a
tenant of the mount, by fio:

    halves   both as fast as they may, single pages at random, each to his half of a file which one
             of them made; under each choice of `foreign`
    noisy    one 64 KiB blocks as fast as he may, the other 512 single pages a second to a file
             of his own, with a floor; and that one alone

The ways of a part take turns; figures are medians of the rounds. A round takes two minutes.
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys

import p2
from mount_rig import (clean_up_when_told_to_end, in_turns, make_folder, note, row, serve,
                       slow_disk, work_folder)

ROUNDS = int(os.environ.get('SLUICE_BENCH_ROUNDS', '3'))
USERS = {'owner': 10001, 'other': 10002, 'noisy': 10001, 'quiet': 10002}
DISK = ['--iops', '3000', '--mbps', '125', '--latency-us', '300']
HEAD = '[global]\ngroup_reporting=0\nfallocate=none\ninvalidate=0\ntime_based\nramp_time=4\nruntime=12\n'
HALVES = HEAD + '''rw=randwrite
bs=4k
filename=file
filesize=512m
norandommap
size=256m
[owner]
uid=10001
[other]
uid=10002
offset=256m
'''
QUIET = '''[quiet]
uid=10002
rw=randwrite
bs=4k
filename=quiet
filesize=64m
size=64m
rate_iops=512
norandommap
'''
NOISY = '''[noisy]
uid=10001
rw=write
bs=64k
filename=noisy
size=1g
'''


def lay_out(folder):
    for name, mib, user in (('file', 512, 'owner'), ('quiet', 64, 'quiet'),
                            ('noisy', 1024, 'noisy')):
        path = os.path.join(folder, name)
        with open(path, 'wb') as f:
            for _ in range(mib):
                f.write(b'x' * (1 << 20))
        os.chown(path, USERS[user], USERS[user])
        os.chmod(path, 0o666)
    os.chmod(folder, 0o777)


def run(bench, options, jobs):
    """What fio says of each job, under a mount of the disk with these options."""
    with contextlib.ExitStack() as stack:
        serve(stack, bench.sluice, bench.disk.fs, bench.mnt, options)
        done = subprocess.run(['fio', '--output-format=json', '-'], input=jobs.encode(),
                              cwd=bench.mnt, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        text = done.stdout.decode()
        if done.returncode:
            raise SystemExit('tenants: fio failed: ' + done.stderr.decode().strip()[:300])
    found = json.loads(text[text.index('{'):])['jobs']
    return {job['jobname']: job['write'] for job in found}


def p99_ms(write):
    return write['clat_ns']['percentile']['99.000000'] / 1e6


# --- two on one file

def halves(bench):
    base = 'memory=768M,tenant.owner.uid=10001,tenant.other.uid=10002,' + ','.join(
        'tenant.%s.dirty_bytes=32M' % name for name in ('owner', 'other'))

    def way(foreign):
        def once():
            write = run(bench, base + ',foreign=' + foreign, HALVES)
            note('foreign=%-12s owner %6.0f writes/s, the other %6.0f' % (
                foreign, write['owner']['iops'], write['other']['iops']))
            return write['other']['iops'] / write['owner']['iops']
        return once
    found = in_turns(ROUNDS, [(f, way(f)) for f in ('none', 'flush', 'targeted')])
    for foreign in 'none', 'flush':
        note('foreign=%s: %.2f of the owner\'s writes are the other\'s' % (foreign,
                                                                           found[foreign]))
    share = found['targeted']
    row('two tenants in one file: the other\'s writes of the owner\'s', '%.2f' % share,
        '0.8-1.25', 0.8 <= share <= 1.25)


# --- one beside another

def noisy(bench):
    base = 'memory=512M,tenant.noisy.uid=10001,tenant.quiet.uid=10002,tenant.quiet.floor=64M'
    waits = []

    def way(jobs):
        def once():
            write = run(bench, base, HEAD + jobs)
            waits.append(write['quiet']['iops'])
            note('quiet %5.0f writes/s, p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms%s' % (
                write['quiet']['iops'], write['quiet']['clat_ns']['percentile']['50.000000'] / 1e6,
                p99_ms(write['quiet']),
                write['quiet']['clat_ns']['percentile']['99.900000'] / 1e6,
                '; noisy %.0f MiB/s' % (write['noisy']['bw'] / 1024) if 'noisy' in write else ''))
            return p99_ms(write['quiet'])
        return once
    found = in_turns(ROUNDS, [('alone', way(QUIET)), ('beside', way(QUIET + NOISY))])
    share = found['beside'] / found['alone']
    row('a quiet tenant beside a noisy one: p99 of that alone', '%.2f' % share, '<= 1.10',
        share <= 1.1)
    row('  its writes a second at the least', '%.0f' % min(waits), '512', min(waits) >= 507)


class Bench:
    def __init__(self, sluice, disk, folder):
        self.sluice, self.disk = sluice, disk
        self.mnt = make_folder(folder, 'mnt')


def why_not():
    if os.geteuid() != 0:
        return 'only root may mount'
    if not os.path.exists('/dev/fuse'):
        return 'there is no /dev/fuse'
    for tool in ('mkfs.xfs', 'losetup', 'fio'):
        if not shutil.which(tool):
            return tool + ' is not installed'
    if p2.available_gib() < 4:
        return 'it needs 4 GiB of free memory'
    return ''


def main():
    reason = why_not()
    if reason:
        print('skipped: ' + reason)
        return
    clean_up_when_told_to_end()
    parts = {'halves': halves, 'noisy': noisy}
    with work_folder() as folder, slow_disk(sys.argv[1], folder) as disk:
        disk.up(p2.FAST_DISK, make=True)
        lay_out(disk.fs)
        disk.remount(DISK)
        os.chmod(folder, 0o755)
        bench = Bench(sys.argv[1], disk, folder)
        for name in sys.argv[2:] or parts:
            parts[name](bench)


if __name__ == '__main__':
    main()
