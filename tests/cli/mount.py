# SPDX-License-Identifier: MIT
"""sluice mount: a directory through the cache does what the directory itself does, for single
operations at random and for real programs; and what happens at its end, when it is full, when its
daemon is killed."""
import contextlib
import ctypes
import errno
import json
import mmap
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import types

import program
from mount_rig import ends, is_mounted, kernel, rig, sh
from program import SLUICE, Skip, contains, equal, refused, sluice

MIB = 1 << 20
OPERATIONS = 40000 if os.environ.get('SLUICE_SOAK') else 3000
LIBC = ctypes.CDLL(None, use_errno=True)


def data(length, seed):
    return random.Random(seed).randbytes(length)


def write_file(path, content):
    with open(path, 'wb') as f:
        f.write(content)


def read_file(path):
    with open(path, 'rb') as f:
        return f.read()


# --- the same operation on mount and plain directory

def renameat2(old, new, flags):
    if LIBC.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags):
        raise OSError(ctypes.get_errno(), 'renameat2')


def fallocate(fd, mode, offset, length):
    if LIBC.fallocate(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)):
        raise OSError(ctypes.get_errno(), 'fallocate')


class Side:
    """One of the two directories, as one process uses it."""

    def __init__(self, root):
        self.root = root
        self.fds = {}

    def path(self, name):
        return os.path.join(self.root, name)

    def do(self, operation, *words):
        try:
            return getattr(self, operation)(*words)
        except OSError as error:
            return errno.errorcode.get(error.errno, error.errno)

    def open(self, slot, name, flags, mode):
        if slot in self.fds:
            os.close(self.fds.pop(slot))
        self.fds[slot] = os.open(self.path(name), flags, mode)

    def fd(self, slot):
        if slot not in self.fds:
            raise OSError(errno.EBADF, '')
        return self.fds[slot]

    def pread(self, slot, length, offset):
        return os.pread(self.fd(slot), length, offset)

    def pwrite(self, slot, content, offset):
        return os.pwrite(self.fd(slot), content, offset)

    def write(self, slot, content):
        return os.write(self.fd(slot), content)

    def ftruncate(self, slot, size):
        os.ftruncate(self.fd(slot), size)

    def truncate(self, name, size):
        os.truncate(self.path(name), size)

    def fallocate(self, slot, mode, offset, length):
        fallocate(self.fd(slot), mode, offset, length)

    def copy(self, slot, other, length, from_, to):
        return os.copy_file_range(self.fd(slot), self.fd(other), length, from_, to)

    def map(self, slot, offset, content):
        """Writes through a shared mapping within the file."""
        size = os.fstat(self.fd(slot)).st_size
        if offset + len(content) > size:
            return 'beyond'
        try:
            with mmap.mmap(self.fd(slot), size) as m:
                m[offset:offset + len(content)] = content
                return bytes(m[:size])
        except PermissionError:
            return 'EACCES'

    def sync(self, slot):
        os.fsync(self.fd(slot))

    def fstat(self, slot):
        return self.shown(os.fstat(self.fd(slot)))

    def lstat(self, name):
        return self.shown(os.lstat(self.path(name)))

    @staticmethod
    def shown(s):
        size = s.st_size if stat.S_ISREG(s.st_mode) else 0
        return oct(s.st_mode), s.st_nlink, s.st_uid, s.st_gid, size

    def utime(self, name, ns):
        os.utime(self.path(name), ns=(ns, ns + 1))
        return os.stat(self.path(name)).st_mtime_ns

    def mtime(self, name):
        """Whether a write moves it."""
        path = self.path(name)
        os.utime(path, ns=(1, 1))
        with open(path, 'ab') as f:
            f.write(b'x')
        return os.stat(path).st_mtime_ns > 10 ** 18, os.stat(path).st_size

    def chmod(self, name, mode):
        os.chmod(self.path(name), mode)

    def chown(self, name, uid, gid):
        os.chown(self.path(name), uid, gid, follow_symlinks=False)

    def unlink(self, name):
        os.unlink(self.path(name))

    def mkdir(self, name, mode):
        os.mkdir(self.path(name), mode)

    def rmdir(self, name):
        os.rmdir(self.path(name))

    def rename(self, old, new, flags):
        renameat2(self.path(old), self.path(new), flags)

    def link(self, old, new):
        os.link(self.path(old), self.path(new), follow_symlinks=False)

    def symlink(self, target, name):
        os.symlink(target, self.path(name))

    def readlink(self, name):
        return os.readlink(self.path(name))

    def mknod(self, name, mode, device):
        os.mknod(self.path(name), mode, device)

    def listdir(self, name):
        return sorted(os.listdir(self.path(name)))

    def scandir(self, name):
        with os.scandir(self.path(name)) as entries:
            return sorted((e.name, e.is_dir(follow_symlinks=False), e.is_symlink())
                          for e in entries)

    def setxattr(self, name, key, value, flags):
        os.setxattr(self.path(name), key, value, flags, follow_symlinks=False)

    def getxattr(self, name, key):
        return os.getxattr(self.path(name), key, follow_symlinks=False)

    def listxattr(self, name):
        return sorted(os.listxattr(self.path(name), follow_symlinks=False))

    def removexattr(self, name, key):
        os.removexattr(self.path(name), key, follow_symlinks=False)

    def access(self, name, mode):
        return os.access(self.path(name), mode)

    def content(self, name):
        return read_file(self.path(name))


def draw(r):
    """A random operation: a name of Side's and its arguments."""
    names = ['a', 'b', 'c', 'd1', 'd2', 'd1/a', 'd1/b', 'd2/a', 'd1/e', 'd1/e/f', 'n' * 255,
             'm' * 256]
    name, other, slot, more = r.choice(names), r.choice(names), r.randrange(4), r.randrange(4)
    offset = r.choice([0, 1, 511, 4096, 5000, r.randrange(200000)])
    length = r.choice([1, 100, 4096, 10000, r.randrange(1, 100000)])
    content = r.randbytes(length)
    flags = r.choice([os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR]) | r.choice(
        [0, os.O_CREAT, os.O_CREAT, os.O_CREAT, os.O_CREAT | os.O_EXCL, os.O_TRUNC,
         os.O_CREAT | os.O_APPEND, os.O_NOFOLLOW, os.O_SYNC, os.O_DIRECTORY])
    key = 'user.' + r.choice('xyz')
    return r.choice([
        ('open', slot, name, flags, r.choice([0o644, 0o600, 0o400, 0o777])),
        ('open', slot, name, flags | os.O_CREAT, 0o644),
        ('open', slot, name, os.O_RDWR | os.O_CREAT, 0o644),
        ('pread', slot, length, offset), ('pread', slot, 300000, 0),
        ('pwrite', slot, content, offset), ('pwrite', slot, content, offset),
        ('write', slot, content), ('ftruncate', slot, offset), ('truncate', name, offset),
        ('fallocate', slot, r.choice([0, 1, 3, 16, 17, 2]), offset, length),
        ('copy', slot, more, length, offset, r.randrange(200000)),
        ('map', slot, offset, content), ('sync', slot),
        ('fstat', slot), ('lstat', name), ('lstat', name), ('utime', name, r.randrange(1 << 60)),
        ('mtime', name), ('chmod', name, r.choice([0o644, 0o755, 0o4755, 0o2755, 0])),
        ('chown', name, r.choice([0, 1, 1000]), r.choice([0, 1000])),
        ('unlink', name), ('mkdir', name, r.choice([0o755, 0o700, 0o777])), ('rmdir', name),
        ('mkdir', r.choice(['d1', 'd2', 'd1/e']), 0o755),
        ('rename', name, other, r.choice([0, 0, 0, 1, 2])), ('link', name, other),
        ('symlink', r.choice(['a', '../d2/a', 'nowhere', 'd1']), name), ('readlink', name),
        ('mknod', name, r.choice([stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFREG]) | 0o640, 0),
        ('mknod', name, stat.S_IFCHR | 0o600, os.makedev(1, 3)),
        ('listdir', r.choice(['.', 'd1', 'd2', 'd1/e'])),
        ('scandir', r.choice(['.', 'd1', 'd2'])),
        ('setxattr', name, key, content[:60], r.choice([0, 0, 1, 2])), ('getxattr', name, key),
        ('listxattr', name), ('removexattr', name, key), ('access', name, r.randrange(8)),
        ('content', name),
    ])


def hangs(side, operation, words):
    """Opening a FIFO waits for somebody; that is the kernel's business."""
    if operation not in ('open', 'content', 'mtime'):
        return False
    name = words[1] if operation == 'open' else words[0]
    try:
        mode = os.stat(side.path(name)).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def worker(pipe, roots):
    sides = [Side(root) for root in roots]
    while True:
        asked = pipe.recv()
        if asked is None:
            return
        operation, *words = asked
        if hangs(sides[1], operation, words):
            pipe.send(('hangs', 'hangs'))
        else:
            pipe.send(tuple(side.do(operation, *words) for side in sides))


def short(word):
    return word if not isinstance(word, bytes) or len(word) < 40 else '<%d bytes>' % len(word)


def compare(r, seed, count, maps):
    """Two processes in turn, each operation on both sides."""
    random_ = random.Random(seed)
    pipes, processes = [], []
    for _ in range(2):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context('fork').Process(
            target=worker, args=(theirs, (r.mount, r.plain)), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    history = []
    try:
        for i in range(count):
            operation = draw(random_)
            if operation[0] == 'map' and not maps:
                continue
            who = random_.randrange(2)
            pipes[who].send(operation)
            found, wanted = pipes[who].recv()
            history.append('%d: process %d: %s -> %s' % (
                i, who, tuple(short(w) for w in operation), short(wanted)))
            if found != wanted:
                print('# seed %d' % seed)
                print('\n'.join('# ' + line for line in history[-60:]))
                if isinstance(found, bytes) and isinstance(wanted, bytes):
                    at = next((i for i, (a, b) in enumerate(zip(found, wanted)) if a != b), None)
                    raise AssertionError('%d and %d bytes, that differ at %s'
                                         % (len(found), len(wanted), at))
                raise AssertionError('the mount said %r, the directory %r' % (found, wanted))
    finally:
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join()


def tree(root):
    """All that is below, as it is shown: for comparison."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            s = os.lstat(path)
            shown = [oct(s.st_mode), s.st_nlink, s.st_uid, s.st_gid]
            if stat.S_ISREG(s.st_mode):
                shown.append(read_file(path))
            found[os.path.relpath(path, root)] = shown
    return found


def random_operations(options, seed, maps=True):
    with rig() as r:
        old = os.umask(0o022)
        try:
            child = r.serve(options)
            compare(r, seed, OPERATIONS, maps)
            equal(sorted(tree(r.mount)), sorted(tree(r.plain)))
            equal(tree(r.mount), tree(r.plain))
            sh('umount', r.mount)
            equal(ends(child), '')
            equal(tree(r.source), tree(r.plain))
        finally:
            os.umask(old)


def test_random_operations_do_the_same():
    random_operations('memory=64M', 1)


def test_random_operations_do_the_same_in_little_memory():
    random_operations('memory=16M,huge_pages=never,block_bytes=1024,idle_files=2', 2)


def test_random_operations_do_the_same_without_the_kernels_cache():
    # where the kernel keeps nothing, only younger ones have shared mappings
    random_operations('memory=32M,reads=direct', 3, maps=kernel() >= (6, 6))


def test_random_operations_do_the_same_at_once():
    """Two pairs of processes in folders of their own: what one does must not show in the other."""
    with rig() as r:
        child = r.serve('memory=32M')
        old, failures = os.umask(0o022), []

        def pair(name, seed):
            sides = types.SimpleNamespace(mount=os.path.join(r.mount, name),
                                          plain=os.path.join(r.plain, name))
            os.mkdir(sides.mount)
            os.mkdir(sides.plain)
            try:
                compare(sides, seed, OPERATIONS // 3, True)
            except AssertionError as error:
                failures.append(str(error))

        try:
            pairs = [threading.Thread(target=pair, args=words) for words in (('x', 4), ('y', 5))]
            for one in pairs:
                one.start()
            for one in pairs:
                one.join()
            equal(failures, [])
            equal(tree(r.mount), tree(r.plain))
        finally:
            os.umask(old)
        sh('umount', r.mount)
        equal(ends(child), '')
        equal(tree(r.source), tree(r.plain))


# --- sizes, times, holes

def test_what_is_open_outlives_its_name_and_names_share_a_file():
    with rig() as r:
        r.serve()
        a, b = os.path.join(r.mount, 'a'), os.path.join(r.mount, 'b')
        write_file(a, b'one')
        os.link(a, b)
        with open(b, 'ab') as f:
            f.write(b' two')
        equal(read_file(a), b'one two')
        equal((os.stat(a).st_ino, os.stat(a).st_nlink), (os.stat(b).st_ino, 2))
        with open(a, 'r+b', buffering=0) as f:
            os.unlink(a)
            os.unlink(b)
            f.write(b'ONE')
            f.seek(0)
            equal((f.read(), os.fstat(f.fileno()).st_nlink), (b'ONE two', 0))
        equal(os.listdir(r.source), [])


def test_times_are_those_of_the_write_and_stay_so():
    with rig() as r:
        child = r.serve()
        kept, set_ = os.path.join(r.mount, 'kept'), os.path.join(r.mount, 'set')
        write_file(kept, b'x' * 5000)
        write_file(set_, b'x' * 5000)
        os.utime(set_, ns=(10 ** 18, 10 ** 18 + 123456789))
        before = os.stat(kept).st_mtime_ns
        time.sleep(0.05)
        equal(sluice('sync', r.mount).status, 0)
        equal(os.stat(kept).st_mtime_ns, before)
        equal(os.stat(set_).st_mtime_ns, 10 ** 18 + 123456789)
        sh('umount', r.mount)
        ends(child)
        equal(os.stat(os.path.join(r.source, 'kept')).st_mtime_ns, before)
        equal(os.stat(os.path.join(r.source, 'set')).st_mtime_ns, 10 ** 18 + 123456789)


def test_holes_are_seen_over_dirty_data():
    with rig() as r:
        r.serve()
        with open(os.path.join(r.mount, 'f'), 'w+b', buffering=0) as f:
            f.truncate(4 * MIB)
            os.pwrite(f.fileno(), b'data', MIB)
            equal(os.lseek(f.fileno(), 0, os.SEEK_DATA), MIB)
            equal(os.lseek(f.fileno(), MIB, os.SEEK_HOLE), MIB + 4096)
            fallocate(f.fileno(), 3, MIB, 4096)
            equal(os.pread(f.fileno(), 4, MIB), bytes(4))


def more_files_than_descriptors(descriptors, settings, files):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    with rig() as r:
        child = r.serve(settings, before=few)
        for i in range(files):
            write_file(os.path.join(r.mount, '%04d' % i), b'%04d' % i)
        with os.scandir(r.mount) as entries:
            equal(sum(e.stat().st_size for e in entries), 4 * files)
        equal(read_file(os.path.join(r.mount, '0007')), b'0007')
        # older kernels can't be asked to forget folders
        for i in range(descriptors + 200 if kernel() >= (6, 18) else 100):
            os.mkdir(os.path.join(r.mount, 'd%04d' % i))
        sh('umount', r.mount)
        equal(ends(child), '')
        equal(read_file(os.path.join(r.source, '%04d' % (files - 1))), b'%04d' % (files - 1))


def test_more_files_than_descriptors():
    more_files_than_descriptors(2048, 'memory=32M,idle_files=16', 3000)


def test_more_dirty_files_than_descriptors():
    more_files_than_descriptors(1024, 'memory=32M,dirty_expire_centisecs=360000', 2000)


# --- whose files

def as_user(uid, gid, function):
    """Runs it in a process of that user; 0, or the errno it failed with."""
    child = os.fork()
    if not child:
        try:
            os.setgroups([gid])
            os.setgid(gid)
            os.setuid(uid)
            os.umask(0o027)
            function()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
        except BaseException:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_callers_have_their_own_rights():
    with rig() as r:
        r.serve()
        os.chmod(r.folder, 0o755)
        shared, closed = os.path.join(r.mount, 'shared'), os.path.join(r.mount, 'closed')
        os.mkdir(shared)
        os.chmod(shared, 0o1777)
        os.mkdir(closed, 0o700)
        mine = os.path.join(shared, 'mine')
        equal(as_user(1000, 1001, lambda: write_file(mine, b'x')), 0)
        equal(as_user(1000, 1001, lambda: os.mkdir(os.path.join(shared, 'dir'), 0o777)), 0)
        for name, mode in (('mine', 0o640), ('dir', 0o750)):
            s = os.stat(os.path.join(r.source, 'shared', name))
            equal((s.st_uid, s.st_gid, s.st_mode & 0o7777), (1000, 1001, mode))
        equal(as_user(1002, 1001, lambda: read_file(mine)), 0)
        equal(as_user(1002, 1002, lambda: read_file(mine)), errno.EACCES)
        equal(as_user(1002, 1002, lambda: os.unlink(mine)), errno.EPERM)
        equal(as_user(1000, 1001, lambda: os.listdir(closed)), errno.EACCES)


def test_a_write_takes_set_user_id_away():
    with rig() as r:
        r.serve()
        os.chmod(r.folder, 0o755)
        for root in (r.mount, r.plain):
            f = os.path.join(root, 'f')
            write_file(f, b'x')
            os.chown(f, 1000, 1000)

            def append(path=f):
                with open(path, 'ab') as file:
                    file.write(b'y')

            modes = []
            for change in (append, lambda path=f: os.truncate(path, 1)):
                for uid in (0, 1000):
                    os.chmod(f, 0o6775)
                    append() if uid == 0 else equal(as_user(uid, 1000, change), 0)
                    modes.append(oct(os.stat(f).st_mode))
            equal(modes, ['0o106775', '0o100775'] * 2)


# --- the end

def test_unmounting_writes_everything():
    with rig() as r:
        child = r.serve('memory=64M,dirty_writeback_centisecs=0,dirty_ratio=90,'
                        'dirty_background_ratio=80')
        write_file(os.path.join(r.mount, 'f'), data(8 * MIB, 1))
        sh('umount', r.mount)
        equal(ends(child), '')
        equal(read_file(os.path.join(r.source, 'f')), data(8 * MIB, 1))


def test_a_signal_unmounts_and_writes_what_is_open_too():
    with rig() as r:
        child = r.serve()
        f = open(os.path.join(r.mount, 'f'), 'w+b', buffering=0)
        f.write(data(MIB, 1))
        with mmap.mmap(f.fileno(), MIB) as m:
            child.send_signal(signal.SIGTERM)
            while is_mounted(r.mount):
                time.sleep(0.01)
            m[5:10] = b'after'
            equal(os.pread(f.fileno(), 10, 0)[5:], b'after')
        f.close()
        equal(ends(child), '')
        equal(read_file(os.path.join(r.source, 'f'))[5:10], b'after')


def test_a_second_signal_ends_it_at_once_and_loses_nothing_accepted():
    with rig() as r:
        # libfuse does not free the name of what it did not unmount itself
        child = r.serve(env=dict(os.environ, ASAN_OPTIONS='detect_leaks=0'))
        f = os.open(os.path.join(r.mount, 'f'), os.O_RDWR | os.O_CREAT)
        os.write(f, data(MIB, 1))
        child.send_signal(signal.SIGTERM)
        while is_mounted(r.mount):
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        equal(ends(child), '')
        with contextlib.suppress(OSError):  # nobody is there to hear it
            os.close(f)
        equal(read_file(os.path.join(r.source, 'f')), data(MIB, 1))


def test_a_killed_daemon_is_said_and_can_be_replaced():
    with rig() as r:
        child = r.serve()
        write_file(os.path.join(r.mount, 'safe'), b'safe')
        equal(sluice('sync', r.mount).status, 0)
        child.send_signal(signal.SIGKILL)
        child.wait()
        for call in (os.listdir, lambda path: os.stat(os.path.join(path, 'none'))):
            try:
                call(r.mount)
                raise AssertionError('somebody answered')
            except OSError as error:
                equal(error.errno, errno.ENOTCONN)
        sh('umount', r.mount)
        r.serve()
        equal(read_file(os.path.join(r.mount, 'safe')), b'safe')


def test_a_replaced_file_is_old_or_new_when_the_daemon_is_killed():
    for option, wanted in (('auto_da_alloc', True), ('noauto_da_alloc', False)):
        with rig() as r:
            child = r.serve('memory=64M,dirty_writeback_centisecs=0,dirty_ratio=90,'
                            'dirty_background_ratio=80,' + option)
            f = os.path.join(r.mount, 'f')
            write_file(f, b'old')
            write_file(f + '.new', data(MIB, 4))
            os.rename(f + '.new', f)
            child.send_signal(signal.SIGKILL)
            child.wait()
            equal(read_file(os.path.join(r.source, 'f')) == data(MIB, 4), wanted)


def test_a_daemon_and_the_helper_of_mount():
    with rig() as r:
        helper = os.path.join(r.folder, 'mount.sluice')
        os.symlink(SLUICE, helper)
        for words in ([SLUICE, 'mount', '-o', 'memory=32M', r.source, r.mount],
                      [helper, r.source, r.mount, '-n', '-o', 'rw,noauto,memory=32M']):
            r.mounts.append(r.mount)
            sh(*words)
            assert is_mounted(r.mount)
            write_file(os.path.join(r.mount, 'f'), data(MIB, 3))
            equal(sluice('sync', r.mount).status, 0)
            equal(read_file(os.path.join(r.source, 'f')), data(MIB, 3))
            sh('umount', r.mount)


# --- a source that changes, is full, goes

def test_changes_underneath_are_seen_at_open():
    with rig() as r:
        r.serve()
        f, below = os.path.join(r.mount, 'f'), os.path.join(r.source, 'f')
        write_file(f, b'ours')
        equal(sluice('sync', r.mount).status, 0)
        equal(read_file(f), b'ours')
        for content in (b'them', b'longer than it was', b's'):
            write_file(below, content)
            equal(read_file(f)[:1], content[:1])
            time.sleep(1.1)  # as long as the kernel may keep a size
            equal(read_file(f), content)


def test_a_folder_lists_what_was_made_and_moved_on_either_side():
    with rig() as r:
        r.serve()
        dice, wanted = random.Random(7), set()
        for i in range(200):
            root, name = dice.choice((r.mount, r.source)), 'n%d' % i
            if dice.randrange(3) == 0:
                time.sleep(0.03)  # so old that the kernel may keep what it lists
                for _ in range(2):
                    equal(sorted(os.listdir(r.mount)), sorted(wanted))
            # only the source surely knows names that were just made there
            old = os.path.join(r.source, dice.choice(sorted(wanted))) if wanted else None
            change = dice.randrange(4) if wanted else 0
            if change < 2:
                write_file(os.path.join(root, name), b'x')
                wanted.add(name)
            elif change == 2:
                os.rename(old, os.path.join(r.source, name))
                wanted ^= {os.path.basename(old), name}
            else:
                os.unlink(old)
                wanted.remove(os.path.basename(old))
            if dice.randrange(3) == 0:
                time.sleep(0.03)  # and so is the change
            for _ in range(dice.randrange(1, 4)):
                equal(sorted(os.listdir(r.mount)), sorted(wanted))


def test_a_full_source_says_so_to_who_writes():
    with rig() as r:
        small = r.mount_tmpfs(4 * MIB)
        child = r.serve(source=small)
        written = 0
        try:
            with open(os.path.join(r.mount, 'f'), 'wb', buffering=0) as f:
                while written < 16 * MIB:
                    written += f.write(data(65536, written))
            raise AssertionError('no end to it')
        except OSError as error:
            equal(error.errno, errno.ENOSPC)
        assert 2 * MIB < written <= 4 * MIB, written
        equal(sluice('sync', r.mount).status, 0)
        equal(os.stat(os.path.join(small, 'f')).st_size, written)
        sh('umount', r.mount)
        equal(ends(child), '')
        equal(read_file(os.path.join(small, 'f'))[-100:], data(65536, written - 65536)[-100:]
              if not written % 65536 else read_file(os.path.join(small, 'f'))[-100:])


def test_a_read_only_source_and_a_read_only_mount():
    with rig() as r:
        small = r.mount_tmpfs(4 * MIB)
        write_file(os.path.join(small, 'f'), b'x')
        sh('mount', '-o', 'remount,ro', small)
        child = r.serve(source=small)
        for options in (None, 'memory=32M,ro'):
            if options:
                sh('mount', '-o', 'remount,rw', small)
                child = r.serve(options, source=small)
            equal(read_file(os.path.join(r.mount, 'f')), b'x')
            for call in (lambda: write_file(os.path.join(r.mount, 'f'), b'y'),
                         lambda: os.mkdir(os.path.join(r.mount, 'd'))):
                try:
                    call()
                    raise AssertionError('it was written to')
                except OSError as error:
                    equal(error.errno, errno.EROFS)
            sh('umount', r.mount)
            equal(ends(child), '')


def test_a_source_that_vanishes_gives_errors_and_no_hang():
    with rig() as r:
        gone = r.make_folder('gone')
        child = r.serve(source=gone)
        f = open(os.path.join(r.mount, 'f'), 'w+b', buffering=0)
        f.write(b'open')
        shutil.rmtree(gone)
        equal(os.pread(f.fileno(), 9, 0), b'open')
        f.close()
        for call in (lambda: write_file(os.path.join(r.mount, 'g'), b'y'),
                     lambda: os.mkdir(os.path.join(r.mount, 'd'))):
            try:
                call()
                raise AssertionError('it was made')
            except OSError as error:
                equal(error.errno, errno.ENOENT)
        sh('umount', r.mount)
        equal(ends(child), '')


# --- the control

def test_statistics_and_sync():
    with rig() as r:
        r.serve('memory=64M,dirty_writeback_centisecs=0,dirty_ratio=90,dirty_background_ratio=80')
        write_file(os.path.join(r.mount, 'f'), data(2 * MIB, 1))
        found = json.loads(sluice('stat', '--json', r.mount).out)
        equal((found['memory_bytes'], found['debt_bytes'], found['dirtied_bytes'],
               found['reads']), (64 * MIB, 2 * MIB, 2 * MIB, 'kernel'))
        contains(sluice('stat', r.mount).out, 'debt_bytes               2097152 (2M)\n')
        done = sluice('sync', r.mount)
        equal((done.status, done.out, done.err), (0, '', ''))
        found = json.loads(sluice('stat', '--json', r.mount).out)
        equal((found['debt_bytes'], found['in_flight_bytes'], found['written_bytes']),
              (0, 0, 2 * MIB))
        equal(read_file(os.path.join(r.source, 'f')), data(2 * MIB, 1))
        equal(os.listxattr(r.mount), os.listxattr(r.source))


def test_statistics_say_why_writers_waited():
    with rig() as r:
        # a limit of 64 pages: whatever the disk, 4 MiB in a row are past it many times
        r.serve('memory=16M,dirty_bytes=256K,dirty_background_bytes=128K')
        contains(sluice('stat', r.mount).out, 'no writer has waited\n')
        path = os.path.join(r.mount, 'f')
        for _ in range(50):
            write_file(path, data(4 * MIB, 1))
            found = json.loads(sluice('stat', '--json', r.mount).out)['waits']
            if len(found) == 16:
                break
        # waits at the limit that follow each other are one; the last sixteen are kept
        assert 1 <= len(found) <= 16, found
        for wait in found:
            equal((wait['pid'], wait['why'] in ('paced', 'limit', 'line')), (os.getpid(), True))
            assert wait['wait_ms'] >= 1 and wait['dirty_bytes'] > wait['freerun_bytes'] // 2, wait
        assert [w['ago_ms'] for w in found] == sorted(w['ago_ms'] for w in found)
        text = sluice('stat', r.mount).out
        contains(text, 'why writers last waited:\n')
        contains(text, ' s ago process %d (python3) waited ' % os.getpid())


# --- programs

WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('PRAGMA journal_mode=' + sys.argv[2])
db.execute('PRAGMA synchronous=FULL')
db.execute('CREATE TABLE IF NOT EXISTS t (i INTEGER PRIMARY KEY, x BLOB)')
while True:
    db.execute('BEGIN')
    for _ in range(5):
        db.execute('INSERT INTO t (x) VALUES (randomblob(3000))')
    db.execute('COMMIT')
    print(db.execute('SELECT count(*) FROM t').fetchone()[0], flush=True)
"""


def sqlite_survives(mode):
    with rig() as r:
        r.serve()
        path = os.path.join(r.mount, 'db')
        said = 0
        for commits in (3, 10, 25):
            child = subprocess.Popen([sys.executable, '-c', WRITER, path, mode],
                                     stdout=subprocess.PIPE)
            for _ in range(commits):
                said = int(child.stdout.readline())
            child.kill()
            child.wait()
            child.stdout.close()
            db = sqlite3.connect(path)
            equal(db.execute('PRAGMA integrity_check').fetchall(), [('ok',)])
            assert db.execute('SELECT count(*) FROM t').fetchone()[0] >= said
            db.close()
        equal(sluice('sync', r.mount).status, 0)
        db = sqlite3.connect('file:%s?mode=ro' % os.path.join(r.source, 'db'), uri=True)
        equal(db.execute('PRAGMA integrity_check').fetchall(), [('ok',)])
        db.close()


def test_sqlite_with_a_rollback_journal_survives_its_writer():
    sqlite_survives('DELETE')


def test_sqlite_with_a_write_ahead_log_survives_its_writer():
    sqlite_survives('WAL')


def test_fio_verifies_what_it_wrote():
    if not shutil.which('fio'):
        raise Skip('fio is not installed')
    for options, engines in (('memory=32M', ('psync', 'mmap')),
                             ('memory=32M,reads=direct', ('psync',))):
        with rig() as r:
            r.serve(options)
            for engine in engines:
                for rw in ('randwrite', 'write', 'randrw'):
                    sh('fio', '--name=v', '--directory=' + r.mount, '--ioengine=' + engine,
                       '--rw=' + rw, '--bsrange=512-128k', '--bs_unaligned', '--size=24m',
                       '--numjobs=2', '--verify=crc32c', '--do_verify=1', '--verify_fatal=1',
                       '--fallocate=none', cwd=r.folder)
                for name in os.listdir(r.mount):
                    os.unlink(os.path.join(r.mount, name))


def test_git_and_tar_get_back_what_they_put_in():
    for tool in ('git', 'tar', 'diff'):
        if not shutil.which(tool):
            raise Skip(tool + ' is not installed')
    with rig() as r:
        child = r.serve()
        tree_ = os.path.join(program.ROOT, 'src')
        sh('sh', '-c', 'tar -C "$1" -cf - . | tar -C "$2" -xpf -', 'sh', tree_, r.mount)
        sh('diff', '-r', tree_, r.mount)
        git = ['git', '-c', 'user.name=n', '-c', 'user.email=e', '-c', 'init.defaultBranch=main',
               '-C', r.mount]
        sh(*git, 'init', '-q')
        sh(*git, 'add', '.')
        sh(*git, 'commit', '-qm', 'one')
        sh(*git, 'gc', '-q')
        sh(*git, 'fsck', '--full')
        sh('git', 'clone', '-q', r.mount, os.path.join(r.mount, 'clone'))
        sh('diff', '-r', os.path.join(r.mount, 'cli'), os.path.join(r.mount, 'clone', 'cli'))
        equal(sh(*git, 'status', '--porcelain'), '?? clone/')
        sh('umount', r.mount)
        equal(ends(child), '')
        sh('git', '-c', 'safe.directory=*', '-C', r.source, 'fsck', '--full')
        sh('diff', '-r', os.path.join(tree_, 'cli'), os.path.join(r.source, 'clone', 'cli'))


# --- what makes no sense

def test_what_makes_no_sense_is_refused():
    refused(['mount', 'a'], 'sluice mount: a source and a folder to mount on are needed')
    refused(['mount', '-o', 'reads=disk', 'a', 'b'],
            'sluice mount: reads cannot be "disk", only kernel or direct')
    refused(['stat', '/'], 'sluice stat: /: is not where a sluice mount is', status=1)
    refused(['sync', '/nowhere'], 'sluice sync: /nowhere: No such file or directory', status=1)
    with rig() as r:
        for option, text in (('memory=1', 'memory cannot be "1", only whole pages of 4096 bytes, '
                              '16M to 15T'),
                             ('dirty_ration=3', 'unknown setting "dirty_ration"; did you mean '
                              '"dirty_ratio"?')):
            refused(['mount', '-o', option, r.source, r.mount], 'sluice mount: ' + text)
        refused(['mount', r.source, r.folder + '/none'],
                'sluice mount: %s/none: No such file or directory' % r.folder, status=1)
        refused(['mount', r.folder + '/none', r.mount],
                'sluice mount: %s/none: No such file or directory' % r.folder, status=1)
        r.serve()
        refused(['mount', r.source, r.plain],
                'sluice mount: %s: is served by another sluice mount already' % r.source, status=1)
        assert not is_mounted(r.plain)


program.main(globals())
