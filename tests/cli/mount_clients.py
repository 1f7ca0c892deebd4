# SPDX-License-Identifier: MIT
"""Programs that people use, on a mount: each must do there what it does anywhere, and the source
must hold it when the mount is gone. Short here, long under SLUICE_SOAK."""
import contextlib
import ctypes
import glob
import os
import pwd
import random
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import program
from mount_rig import ends, rig, sh
from program import Skip, equal, sluice

SOAK = bool(os.environ.get('SLUICE_SOAK'))
MODES = ('memory=128M', 'memory=64M,reads=direct')
MIB = 1 << 20


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skip(tool + ' is not installed')


def run(words, status=(0,), **options):
    """Its output; it has to end with one of these."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    text = done.stdout.decode(errors='replace')
    if done.returncode not in status:
        raise AssertionError('%s: status %d: %s' % (' '.join(words), done.returncode, text[-3000:]))
    return text


def source_of(r):
    """Where a sync costs nothing, unless there is time."""
    return r.source if SOAK else r.mount_tmpfs(800 * MIB)


def unmounted(r, child):
    """Ends it and looks whether all was said to be well."""
    sh('umount', r.mount)
    equal([line for line in ends(child).splitlines() if ': recovered: ' not in line], [])


# --- PostgreSQL

def is_alive(pid):
    try:
        with open('/proc/%d/stat' % pid) as f:
            return f.read().rsplit(')', 1)[1].split()[0] not in 'ZX'
    except OSError:
        return False


def kill_all(pid):
    """The process and its children, as at a crash; the parent first, that it does not mourn."""
    family = [pid] + [int(child) for child in run(['pgrep', '-P', str(pid)], (0, 1)).split()]
    for one in family:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    while any(is_alive(one) for one in family):
        time.sleep(0.01)
    for one in family:  # not everywhere is there somebody who buries orphans
        with contextlib.suppress(ChildProcessError):
            os.waitpid(one, 0)


class Postgres:
    def __init__(self, r, folder):
        found = sorted(glob.glob('/usr/lib/postgresql/*/bin'))
        if not found:
            raise Skip('postgresql is not installed')
        self.bin = found[-1]
        self.user = pwd.getpwnam('postgres')
        self.log = r.make_folder('log')
        self.data = os.path.join(folder, 'pg')
        os.makedirs(self.data, exist_ok=True)
        os.chmod(r.folder, 0o755)
        os.chmod(folder, 0o755)
        os.chown(self.data, self.user.pw_uid, self.user.pw_gid)
        os.chown(self.log, self.user.pw_uid, self.user.pw_gid)
        self.env = dict(PGHOST=self.log, PGUSER='postgres', PGDATABASE='postgres', LC_ALL='C',
                        PATH=self.bin + ':/usr/bin:/bin')

    def become(self):
        os.setgroups([])
        os.setgid(self.user.pw_gid)
        os.setuid(self.user.pw_uid)

    def run(self, *words, status=(0,)):
        return run([os.path.join(self.bin, words[0]), *words[1:]], status, cwd='/', env=self.env,
                   preexec_fn=self.become)

    def start(self):
        try:
            self.start_it()
        except AssertionError as error:
            with open(self.log + '/log') as f:
                raise AssertionError('%s\n%s' % (error, f.read()[-1500:]))

    def start_it(self):
        self.run('pg_ctl', '-D', self.data, '-w', '-t', '120', '-l', self.log + '/log', 'start',
                 '-o', "-k %s -c listen_addresses='' -c shared_buffers=16MB "
                 '-c checkpoint_timeout=30s -c max_wal_size=64MB' % self.log)

    def pid(self):
        with open(os.path.join(self.data, 'postmaster.pid')) as f:
            return int(f.readline())

    def kill(self):
        """The server and all its processes, as at a crash."""
        kill_all(self.pid())

    def count(self, what):
        return int(self.run('psql', '-XAtc', what).strip())

    def is_sound(self):
        equal(self.count("SELECT count(*) FROM pgbench_accounts"), 100000 * self.scale)
        equal(self.run('psql', '-XAtc', """
            SELECT (SELECT sum(abalance) FROM pgbench_accounts) = d,
                   (SELECT sum(tbalance) FROM pgbench_tellers) = d,
                   (SELECT sum(bbalance) FROM pgbench_branches) = d
            FROM (SELECT coalesce(sum(delta), 0) AS d FROM pgbench_history) AS h"""), 't|t|t\n')
        self.run('pg_amcheck', '--all', '--install-missing', '--heapallindexed')

    def fill(self, scale):
        self.scale = scale
        self.run('initdb', '-k', '-A', 'trust', '-D', self.data)
        self.start()
        self.run('pgbench', '-i', '-q', '-s', str(scale))

    def bench(self, transactions):
        """Of four clients; in the background."""
        return subprocess.Popen(
            [os.path.join(self.bin, 'pgbench'), '-n', '-c', '4', '-t', str(transactions)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=self.env, cwd='/', preexec_fn=self.become)


def postgres(options):
    with rig() as r:
        child = r.serve(options, source=source_of(r))
        p = Postgres(r, r.mount)
        p.fill(20 if SOAK else 1)
        try:
            for round_ in range(5 if SOAK else 1):
                bench = p.bench(1000000)
                before = p.count('SELECT count(*) FROM pgbench_history')
                while p.count('SELECT count(*) FROM pgbench_history') < before + 300:
                    assert bench.poll() is None
                known = p.count('SELECT count(*) FROM pgbench_history')
                p.kill()
                bench.wait()
                p.start()
                assert p.count('SELECT count(*) FROM pgbench_history') >= known
                p.is_sound()
            p.run('pg_ctl', '-D', p.data, '-w', '-m', 'fast', 'stop')
        except BaseException:
            p.kill()
            raise
        p.run('pg_checksums', '--check', '-D', p.data)
        unmounted(r, child)


def test_postgres_survives_its_end():
    postgres(MODES[0])


def test_postgres_survives_its_end_without_the_kernels_cache():
    if not SOAK:
        raise Skip('it takes long: ./dev soak')
    postgres(MODES[1])


def test_postgres_survives_the_end_of_the_daemon():
    """What it had accepted is written by the next one."""
    if 'persist' not in sluice('mount', '--help').out + open(
            os.path.join(program.ROOT, 'docs', 'man', 'sluice-mount.1')).read():
        raise Skip('mounts do not persist')
    with rig() as r:
        source = source_of(r)
        options = MODES[0] + ',persist=' + r.make_folder('persist') + '/of'
        child = r.serve(options, source=source)
        p = Postgres(r, r.mount)
        p.fill(1)
        for _ in range(5 if SOAK else 1):
            bench = p.bench(1000000)
            before = p.count('SELECT count(*) FROM pgbench_history')
            while p.count('SELECT count(*) FROM pgbench_history') < before + 200:
                assert bench.poll() is None
            known, pid = p.count('SELECT count(*) FROM pgbench_history'), p.pid()
            child.send_signal(signal.SIGKILL)
            child.wait()
            bench.wait()
            kill_all(pid)
            subprocess.run(['umount', '-l', r.mount])
            child = r.serve(options, source=source)
            p.start()
            assert p.count('SELECT count(*) FROM pgbench_history') >= known
            p.is_sound()
        p.run('pg_ctl', '-D', p.data, '-w', '-m', 'fast', 'stop')
        p.run('pg_checksums', '--check', '-D', p.data)
        unmounted(r, child)


# --- SQLite

WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
db.execute('PRAGMA synchronous=FULL')
while True:
    db.execute('BEGIN IMMEDIATE')
    n = db.execute('SELECT coalesce(max(i), 0) + 1 FROM t').fetchone()[0]
    db.execute('INSERT INTO t VALUES (?, randomblob(2000))', (n,))
    db.execute('UPDATE total SET n = n + 1')
    db.execute('COMMIT')
    print(n, flush=True)
"""


def sqlite_of_several(mode, options):
    with rig() as r:
        child = r.serve(options, source=source_of(r))
        path = os.path.join(r.mount, 'db')
        db = sqlite3.connect(path)
        equal(db.execute('PRAGMA journal_mode=' + mode).fetchone(), (mode.lower(),))
        db.executescript('CREATE TABLE t (i INTEGER PRIMARY KEY, x); '
                         'CREATE TABLE total (n); INSERT INTO total VALUES (0)')
        db.close()
        draw = random.Random(1)
        for _ in range(30 if SOAK else 2):
            writers = [subprocess.Popen([sys.executable, '-c', WRITER, path],
                                        stdout=subprocess.PIPE, bufsize=0) for _ in range(3)]
            known = 0
            for _ in range(draw.randrange(3, 20 if SOAK else 6)):
                for out in select.select([w.stdout for w in writers], [], [])[0]:
                    known = max(known, int(out.readline()))
            for writer in writers:
                writer.kill()
            for writer in writers:
                writer.wait()
                writer.stdout.close()
            db = sqlite3.connect(path)
            equal(db.execute('PRAGMA integrity_check').fetchall(), [('ok',)])
            rows, last, total = db.execute('SELECT count(*), max(i), (SELECT n FROM total) '
                                           'FROM t').fetchone()
            equal((rows, total), (last, last))
            assert rows >= known, (rows, known)
            db.close()
        unmounted(r, child)


def test_sqlite_with_several_writers_that_are_killed():
    sqlite_of_several('DELETE', MODES[0])


def test_sqlite_with_several_writers_and_a_log():
    sqlite_of_several('WAL', MODES[0])


def test_sqlite_with_several_writers_without_the_kernels_cache():
    sqlite_of_several('WAL', MODES[1])


# --- suites that stress file systems

STRESSORS = ('access chmod chown copy-file dentry dir dirdeep dirmany dup fallocate fcntl file-ioctl '
             'filename flock fpunch fsize fstat getdent hdd iomix lease link locka lockf lockofd '
             'mknod mmap open pipe readahead rename revio seek sendfile splice symlink sync-file '
             'touch utime xattr').split()


def test_stressors():
    need('stress-ng')
    for options in MODES if SOAK else MODES[:1]:
        with rig() as r:
            child = r.serve(options, source=source_of(r))
            some = STRESSORS if SOAK else STRESSORS[::4]
            for name in some:
                amount = ['-t', '20'] if SOAK else ['-t', '1', '--%s-ops' % name, '40']
                more = {'hdd': ['--hdd-bytes', '16m'], 'iomix': ['--iomix-bytes', '16m'],
                        'seek': ['--seek-size', '16m'], 'revio': ['--revio-bytes', '16m'],
                        'copy-file': ['--copy-file-bytes', '16m'],
                        'readahead': ['--readahead-bytes', '16m'],
                        'mmap': ['--mmap-file', '--mmap-bytes', '16m'],
                        'fallocate': ['--fallocate-bytes', '16m'],
                        'sync-file': ['--sync-file-bytes', '16m']}.get(name, [])
                # 4: it cannot be run here
                run(['stress-ng', '--temp-path', r.mount, '--verify', '--%s' % name, '2', *amount,
                     *more], (0, 4), cwd=r.folder)
            equal(os.listdir(r.mount), [])
            unmounted(r, child)


def test_dbench():
    need('dbench')
    for options in MODES if SOAK else MODES[:1]:
        with rig() as r:
            child = r.serve(options, source=source_of(r))
            text = run(['dbench', '-c', '/usr/share/dbench/client.txt', '-D', r.mount, '-t',
                        '60' if SOAK else '2', '4'])
            assert 'Throughput' in text and 'failed' not in text.lower(), text[-2000:]
            unmounted(r, child)


def test_fs_mark():
    need('fs_mark')
    with rig() as r:
        child = r.serve(MODES[0], source=source_of(r))
        for sync in range(7) if SOAK else (1, 3):
            # it takes no path of 40 bytes or more
            run(['fs_mark', '-d', os.path.relpath(os.path.join(r.mount, 'd%d' % sync), r.folder), '-n',
                 '5000' if SOAK else '100', '-s', '10240', '-t', '2', '-S', str(sync), '-k', '-l',
                 'log'], cwd=r.folder)
            files = [os.path.join(folder, name)
                     for folder, _, names in os.walk(os.path.join(r.mount, 'd%d' % sync))
                     for name in names]
            equal((len(files), {os.stat(f).st_size for f in files}),
                  (10000 if SOAK else 200, {10240}))
        unmounted(r, child)


def test_fio_verifies_with_every_engine():
    need('fio')
    for options in MODES:
        with rig() as r:
            child = r.serve(options, source=source_of(r))
            engines = ('sync', 'psync', 'vsync', 'pvsync2', 'posixaio', 'libaio', 'io_uring', 'mmap')
            some = engines if SOAK else engines[1::2] if options == MODES[0] else engines[6:7]
            for engine in some:
                words = ['fio', '--name=v', '--directory=' + r.mount, '--ioengine=' + engine,
                         '--rw=randwrite', '--bsrange=512-64k', '--bs_unaligned', '--iodepth=4',
                         '--size=%dm' % (512 if SOAK else 4), '--numjobs=2', '--verify=crc32c',
                         '--do_verify=1', '--verify_fatal=1', '--fallocate=none', '--unlink=1']
                text = subprocess.run(words, cwd=r.folder, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
                shown = text.stdout.decode(errors='replace')
                if engine == 'io_uring' and 'not permitted' in shown:
                    continue
                equal((engine, text.returncode, text.returncode and shown), (engine, 0, 0))
            unmounted(r, child)


# --- work on trees of files

def tracked():
    """The files of this project, as git knows them or as they lie here."""
    skip = ('build', '.git')
    names = [os.path.relpath(os.path.join(folder, name), program.ROOT)
             for top in os.listdir(program.ROOT) if not top.startswith(skip)
             for folder, _, files in os.walk(os.path.join(program.ROOT, top)) for name in files]
    return names + [name for name in os.listdir(program.ROOT)
                    if os.path.isfile(os.path.join(program.ROOT, name))]


def copy_project(r):
    names = '\0'.join(sorted(set(tracked())))
    tree = os.path.join(r.mount, 'tree')
    os.mkdir(tree)
    packed = subprocess.run(['tar', '-C', program.ROOT, '--null', '-T', '-', '-cf', '-'],
                            input=names.encode(), stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(['tar', '-C', tree, '-xpf', '-'], input=packed, check=True)
    subprocess.run(['tar', '-C', tree, '-df', '-'], input=packed, check=True)
    return tree


def test_this_project_is_built_on_it():
    need('tar', 'meson', 'ninja', 'cc')
    with rig() as r:
        child = r.serve(MODES[0], source=source_of(r))
        tree = copy_project(r)
        build = os.path.join(tree, 'build')
        run(['meson', 'setup', build], cwd=tree)
        targets = run(['ninja', '-C', build, '-t', 'targets', 'all'])
        objects = [line.split(':')[0] for line in targets.splitlines()
                   if '.p/src_base_' in line and '.c.o:' in line or '.p/base_' in line]
        assert objects, targets[:2000]
        run(['ninja', '-C', build] + ([] if SOAK else objects[:4]))
        if SOAK:
            run(['meson', 'test', '-C', build, '--suite', 'base'])
        text = run(['ninja', '-C', build] + ([] if SOAK else objects[:4]))
        assert 'no work to do' in text, text  # times are right
        shutil.rmtree(tree)
        equal(os.listdir(r.mount), [])
        unmounted(r, child)


def test_rsync_brings_all_and_finds_nothing_to_do_again():
    need('rsync')
    with rig() as r:
        child = r.serve(MODES[0], source=source_of(r))
        from_ = program.ROOT if SOAK else os.path.join(program.ROOT, 'src')
        words = ['rsync', '-aHAX', '--delete', '--exclude=/build*', '--exclude=/.git', from_ + '/',
                 os.path.join(r.mount, 'copy')]
        run(words)
        equal(run(words + ['-ni']), '')
        equal(run(words + ['-nic']), '')
        equal(sluice('sync', r.mount).status, 0)
        equal(run(words + ['-ni']), '')
        unmounted(r, child)


def test_git_of_this_project():
    need('git')
    if not os.path.exists(os.path.join(program.ROOT, '.git')):
        raise Skip('this is not a clone')
    with rig() as r:
        child = r.serve(MODES[0], source=source_of(r))
        clone = os.path.join(r.mount, 'clone')
        git = ['git', '-c', 'safe.directory=*', '-c', 'gc.auto=0']
        run(git + ['clone', '-q', '--no-local', '--no-hardlinks', '--single-branch',
                   *([] if SOAK else ['--depth=5']), 'file://' + program.ROOT, clone])
        run(git + ['-C', clone, 'gc', '-q'])
        run(git + ['-C', clone, 'fsck', '--full'])
        equal(run(git + ['-C', clone, 'status', '--porcelain']), '')
        equal(run(git + ['-C', clone, 'rev-parse', 'HEAD']),
              run(git + ['-C', program.ROOT, 'rev-parse', 'HEAD']))
        unmounted(r, child)


ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans are ours
program.main(globals())
