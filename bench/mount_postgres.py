# SPDX-License-Identifier: MIT
"""The part postgres of bench/mount.py: pgbench on a slow disk, on the kernel's page cache and on
the mount's.

The database is made once, on a fast disk; each run begins with a copy of that disk's bytes and
cold caches, reads the tables from end to end, which leaves them in the cache in the largest folios
there are, and then updates them at random. How much the cache charges its writers with, and how much of
that is written, is what the whole of Sluice is about; so both are shown.
"""
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess

import p2
from mount_rig import dirty_limits, make_folder, note, ratio_row, serve, sh, slow_disk

BIN = '/usr/lib/postgresql/15/bin/'
PGBENCH = BIN + 'pgbench'
FREE_GIB = 10
SCALE = int(os.environ.get('SLUICE_BENCH_SCALE', '100'))
ROUNDS = int(os.environ.get('SLUICE_BENCH_ROUNDS', '5'))
CLIENTS, SECONDS = 32, 12
TABLES = SCALE * (15 << 20)  # bytes, about
LIMIT, BACKGROUND = TABLES // 2, TABLES // 4
SETTINGS = """
listen_addresses = ''
shared_buffers = 128MB
max_connections = 100
max_wal_size = 4GB
checkpoint_timeout = 1h
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0
"""


def as_postgres(*words):
    return sh('runuser', '-u', 'postgres', '--', *words, cwd='/')


class Database:
    """A server on the files in a folder, stopped whatever happens."""

    def __init__(self, folder, sockets):
        self.data, self.sockets = os.path.join(folder, 'pg'), sockets

    def __enter__(self):
        as_postgres(BIN + 'pg_ctl', '-D', self.data, '-w', '-s', '-l', self.sockets + '/log',
                    '-o', '-k ' + self.sockets, 'start')
        return self

    def __exit__(self, *_):
        with contextlib.suppress(SystemExit):
            as_postgres(BIN + 'pg_ctl', '-D', self.data, '-m', 'immediate', '-s', 'stop')

    def pgbench(self, *options):
        return as_postgres(PGBENCH, '-h', self.sockets, *options, 'postgres')

    def query(self, text):
        return as_postgres(BIN + 'psql', '-h', self.sockets, '-qAtc', text, 'postgres')


def make_database(disk, sockets):
    disk.up(p2.FAST_DISK, make=True)
    sh('chown', 'postgres', disk.fs, sockets)
    data = os.path.join(disk.fs, 'pg')
    as_postgres(BIN + 'initdb', '-D', data, '-A', 'trust', '-k', '--no-sync')
    with open(os.path.join(data, 'postgresql.conf'), 'a') as f:
        f.write(SETTINGS)
    with Database(disk.fs, sockets) as db:
        db.pgbench('-i', '-q', '-s', str(SCALE), '--fillfactor=90')
        db.query('CHECKPOINT')
        as_postgres(BIN + 'pg_ctl', '-D', data, '-m', 'fast', '-w', '-s', 'stop')


def kernel_charged():
    """Bytes that the kernel has charged writers with, ever."""
    for line in p2.get('/proc/vmstat').splitlines():
        if line.startswith('nr_dirtied '):
            return int(line.split()[1]) * os.sysconf('SC_PAGESIZE')
    return 0


def charged_and_written(bench, disk, mounted):
    if not mounted:
        return kernel_charged(), disk.stats()['write_bytes']
    stats = json.loads(sh(bench.sluice, 'stat', '--json', bench.mnt))
    return stats['charged_bytes'], stats['written_bytes']


def run_once(bench, golden, sockets, mounted):
    """Transactions a second, and bytes charged for each byte written."""
    with slow_disk(bench.sluice, bench.folder) as disk, contextlib.ExitStack() as stack:
        sh('cp', '--sparse=always', golden, disk.image)
        disk.up(p2.DISK)
        p2.put(p2.VM + 'drop_caches', 3)
        folder = disk.fs
        if mounted:
            folder = serve(stack, bench.sluice, disk.fs, bench.mnt,
                           'memory=%d,dirty_bytes=%d,dirty_background_bytes=%d' % (
                               TABLES * 2 >> 20 << 20, LIMIT, BACKGROUND)).path
        with Database(folder, sockets) as db:
            for table in 'accounts', 'tellers', 'branches':
                db.query('SELECT count(*) FROM pgbench_' + table)
            before = charged_and_written(bench, disk, mounted)
            out = db.pgbench('-n', '-N', '-M', 'prepared', '-c', str(CLIENTS), '-j', '2', '-T',
                             str(SECONDS))
            after = charged_and_written(bench, disk, mounted)
    charged, written = (b - a for a, b in zip(before, after))
    return float(re.search(r'tps = ([\d.]+)', out).group(1)), charged / max(written, 1)


def run(bench):
    sockets = make_folder(bench.folder, 'sockets')
    golden = os.path.join(bench.folder, 'golden')
    with slow_disk(bench.sluice, bench.folder) as disk:
        make_database(disk, sockets)
        sh('umount', disk.fs)
        os.link(disk.image, golden)
    found = {False: [], True: []}
    with dirty_limits(LIMIT, BACKGROUND):
        for _ in range(ROUNDS):
            for mounted in False, True:
                found[mounted].append(run_once(bench, golden, sockets, mounted))
                note('%s: %.0f tps, %.1f times as much charged as written' % (
                    'mount' if mounted else 'kernel', *found[mounted][-1]))
    tps = {m: statistics.mean(r[0] for r in f) for m, f in found.items()}
    ratio_row('pgbench simple-update, scale %d, mean tps: of kernel XFS' % SCALE,
              tps[True] / tps[False], 1.5)
    note('charged over written: kernel %.1f, mount %.2f' % (
        *(statistics.mean(r[1] for r in found[m]) for m in (False, True)),))
