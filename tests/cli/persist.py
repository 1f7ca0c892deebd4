# SPDX-License-Identifier: MIT
"""sluice mount -o persist=PATH: the daemon is killed while programs write, and nothing that a write
said was written is lost; what has no file any more is set aside; what is not ours is refused."""
import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import program
from mount_rig import is_mounted, need_mounts
from program import SLUICE, Skip, equal, sluice

KILLS = 200 if os.environ.get('SLUICE_SOAK') else 6
MOST = 300000
GONE = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.EBADF)
LAZY = 'memory=32M,dirty_writeback_centisecs=0,dirty_ratio=80,dirty_background_ratio=70,'


def contains(text, *parts):
    for part in parts:
        program.contains(text, part)


def answers(folder):
    with contextlib.suppress(OSError):
        os.statvfs(folder)  # which is not answered from what the kernel remembers
        return is_mounted(folder)
    return False


class Rig:
    """A source, a place to mount on, and a place for arenas in memory: all gone at the end."""

    def __init__(self):
        need_mounts()
        if not os.path.isdir('/dev/shm'):
            raise Skip('there is no /dev/shm')
        self.folder = tempfile.mkdtemp(prefix='sluice-persist-', dir='/var/tmp')
        self.memory = tempfile.mkdtemp(prefix='sluice-persist-', dir='/dev/shm')
        self.source = os.path.join(self.folder, 'source')
        self.mount = os.path.join(self.folder, 'mount')
        self.arena = os.path.join(self.memory, 'arena')
        os.mkdir(self.source)
        os.mkdir(self.mount)
        self.child = None

    def serve(self, options=LAZY):
        """Starts it in the foreground, over a dead one or not; returns once it answers."""
        self.child = subprocess.Popen(
            [SLUICE, 'mount', '-f', '-o', options.rstrip(',') + ',persist=' + self.arena,
             self.source, self.mount],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not answers(self.mount):
            if self.child.poll() is not None:
                raise AssertionError('it did not start: ' + self.child.stderr.read().decode())
            time.sleep(0.01)

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        said = self.child.stderr.read().decode()
        self.child.stderr.close()
        return said

    def end(self):
        """Unmounts and returns what it had said."""
        subprocess.run(['umount', self.mount], check=True)
        self.child.wait(60)
        said = self.child.stderr.read().decode()
        self.child.stderr.close()
        equal(self.child.returncode, 0)
        return said

    def close(self):
        while is_mounted(self.mount):
            subprocess.run(['umount', '-l', self.mount], stderr=subprocess.DEVNULL)
        if self.child and self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        shutil.rmtree(self.folder)
        shutil.rmtree(self.memory)


@contextlib.contextmanager
def rig():
    r = Rig()
    try:
        yield r
    finally:
        r.close()


# --- at random

class Cut(Exception):
    """The daemon went in the middle of a call."""


class File:
    """One file, its bytes as acknowledged, and what a call was about to make of them."""

    def __init__(self, folder, name, seed):
        self.path = os.path.join(folder, name)
        self.random = random.Random(seed)
        self.names = [self.path]
        self.bytes, self.next = None, None
        self.calls = 0

    def call(self, after, function, *args):
        self.next = after
        try:
            function(*args)
        except OSError as error:
            if error.errno in GONE:
                raise Cut from error
            raise
        self.bytes, self.next = after, None
        self.calls += 1

    def make(self):
        def create():
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
        self.call(b'', create)

    def write(self, append):
        offset = len(self.bytes) if append else self.random.randrange(MOST // 2)
        length = self.random.choice((1, 100, 4096, self.random.randrange(1, 90000)))
        new = self.random.randbytes(length)

        def put():
            fd = os.open(self.path, os.O_RDWR)
            try:
                done = 0
                while done < length:
                    done += os.pwrite(fd, new[done:], offset + done)
            finally:
                with contextlib.suppress(OSError):
                    os.close(fd)
        old = self.bytes + bytes(max(0, offset - len(self.bytes)))
        self.call(old[:offset] + new + old[offset + length:], put)

    def truncate(self):
        size = self.random.randrange(MOST // 2)
        self.call(self.bytes[:size] + bytes(max(0, size - len(self.bytes))), os.truncate, self.path,
                  size)

    def rename(self):
        other = self.path[:-1] + ('b' if self.path[-1] == 'a' else 'a')
        self.names = [self.path, other]
        self.call(self.bytes, os.rename, self.path, other)
        self.path, self.names = other, [other]

    def sync(self):
        def do():
            fd = os.open(self.path, os.O_RDWR)
            try:
                os.fsync(fd)
            finally:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self.call(self.bytes, do)

    def step(self):
        if self.bytes is None:
            self.make()
        elif len(self.bytes) > MOST:
            self.truncate()
        else:
            what = self.random.random()
            if what < 0.6:
                self.write(False)
            elif what < 0.75:
                self.write(True)
            elif what < 0.87:
                self.truncate()
            elif what < 0.93:
                self.rename()
            elif what < 0.96:
                self.sync()
            else:
                self.call(None, os.unlink, self.path)

    def check(self, root):
        """Compares with what is below another folder, and takes that over."""
        found = None
        for path in self.names:
            path = os.path.join(root, os.path.basename(path))
            if os.path.exists(path):
                self.path = os.path.join(os.path.dirname(self.path), os.path.basename(path))
                with open(path, 'rb') as f:
                    found = f.read()
        old, new = self.bytes, self.next if self.next is not None else self.bytes
        if found is None:
            assert self.bytes is None or self.next is None, self.path + ' is gone'
        else:
            old, new = old or b'', new or b''
            assert min(len(old), len(new)) <= len(found) <= max(len(old), len(new)), \
                '%s: %d bytes, not %d or %d' % (self.path, len(found), len(old), len(new))
            if found not in (old, new):
                for at, byte in enumerate(found):
                    may = {old[at] if at < len(old) else 0, new[at] if at < len(new) else 0}
                    assert byte in may, '%s: byte %d is %d, not %s' % (self.path, at, byte, may)
        self.bytes, self.next, self.names = found, None, [self.path]


def work(files, seed):
    pick = random.Random(seed)
    with contextlib.suppress(Cut):
        while True:
            pick.choice(files).step()


def calls(files):
    return sum(f.calls for some in files for f in some)


def test_nothing_that_was_written_is_lost():
    chance = random.Random(5)
    with rig() as r:
        files = [[File(r.mount, '%d-%d.a' % (t, i), 10 * t + i) for i in range(3)]
                 for t in range(3)]
        said = ''
        for kill in range(KILLS):
            r.serve(LAZY if kill % 2 else 'memory=32M,dirty_writeback_centisecs=5,'
                                          'dirty_expire_centisecs=10,block_bytes=1024,')
            for f in sum(files, []):
                f.check(r.mount if kill % 3 else r.source)
            threads = [threading.Thread(target=work, args=(some, kill)) for some in files]
            for t in threads:
                t.start()
            enough = calls(files) + chance.randrange(20, 400)
            while calls(files) < enough and all(t.is_alive() for t in threads):
                time.sleep(0.002)
            said += r.kill()
            for t in threads:
                t.join()
        r.serve()
        said += r.end()
        for f in sum(files, []):
            f.check(r.source)
        recovered = said.count(' bytes written')
        print('# %d kills, %d calls, %d files recovered' % (KILLS, calls(files), recovered))
        assert calls(files) >= 20 * KILLS and recovered, said
        # what was being removed may have lost its name before the daemon heard: that is set aside
        equal(os.path.exists(r.arena), False)


# --- one by one

def write(path, data):
    with open(path, 'wb') as f:
        f.write(data)


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def test_what_is_said_and_counted():
    with rig() as r:
        r.serve()
        write(os.path.join(r.mount, 'f'), b'x' * 10000)
        write(os.path.join(r.mount, 'g'), b'y' * 5)
        equal(os.path.getsize(os.path.join(r.source, 'f')), 0)
        r.kill()
        options = 'memory=32M,persist=' + r.arena
        done = subprocess.run([SLUICE, 'mount', '-o', options, r.source, r.mount],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        equal(sorted(done.stderr.decode().splitlines()),
              ['sluice mount: recovered: %s/%s: %d bytes written' % (r.source, name, size)
               for name, size in (('f', 10000), ('g', 5))])
        equal(read(os.path.join(r.source, 'f')), b'x' * 10000)
        out = sluice('stat', r.mount).out
        contains(out, 'recovered_files          2\n', 'recovered_bytes          10005')
        equal(sum(r.mount in line for line in open('/proc/mounts')), 1)
        subprocess.run(['umount', r.mount], check=True)
        while os.path.exists(r.arena):
            time.sleep(0.01)


def test_a_file_that_was_replaced_gets_nothing():
    with rig() as r:
        r.serve()
        for name in ('gone', 'replaced', 'moved', 'kept'):
            write(os.path.join(r.mount, name), name.encode() * 1000)
        r.kill()
        inside = {name: os.path.join(r.source, name) for name in os.listdir(r.source)}
        os.unlink(inside['gone'])
        os.unlink(inside['replaced'])
        write(inside['replaced'], b'other')
        os.mkdir(os.path.join(r.source, 'folder'))
        os.rename(inside['moved'], os.path.join(r.source, 'folder', 'elsewhere'))
        r.serve()
        said = r.end()
        equal(read(inside['replaced']), b'other')
        equal(read(inside['kept']), b'kept' * 1000)
        equal(read(os.path.join(r.source, 'folder', 'elsewhere')), b'moved' * 1000)
        aside = r.arena + '.recovered'
        lists = [name for name in os.listdir(aside) if name.endswith('.list')]
        equal(len(lists), 2)
        for name in lists:
            path, text = os.path.join(aside, name), read(os.path.join(aside, name)).decode()
            word = 'gone' if 'path %s\n' % inside['gone'] in text else 'replaced'
            contains(text, 'path %s\n' % inside[word], 'length %d\n' % (len(word) * 1000),
                     'bytes 0 4')
            equal(read(path[:-4] + 'bytes'), word.encode() * 1000)
        contains(said, 'not recovered: %s: it is gone; its 4000 bytes are in' % inside['gone'],
                 'another file has its name')


def test_what_was_removed_is_dropped():
    with rig() as r:
        r.serve()
        f = open(os.path.join(r.mount, 'f'), 'wb', buffering=0)
        f.write(b'nobody' * 100)
        os.unlink(os.path.join(r.mount, 'f'))
        r.kill()
        with contextlib.suppress(OSError):
            f.close()
        r.serve()
        contains(r.end(), 'dropped: %s/f' % r.source)
        equal(os.listdir(r.source), [])
        equal(os.listdir(r.memory), [])


def test_one_arena_has_one_process():
    with rig() as r:
        r.serve()
        write(os.path.join(r.mount, 'f'), b'mine')
        other = os.path.join(r.folder, 'other')
        os.mkdir(other)
        second = sluice('mount', '-f', '-o', 'memory=32M,persist=' + r.arena, other, other)
        equal(second.status, 1)
        contains(second.err, 'is in use by process %d' % r.child.pid)
        equal(read(os.path.join(r.mount, 'f')), b'mine')
        r.end()
        equal(read(os.path.join(r.source, 'f')), b'mine')


def refused_arena(r, change):
    """What is said of an arena after a change to its file; it is as it was afterwards."""
    r.serve()
    write(os.path.join(r.mount, 'f'), b'data')
    r.kill()
    subprocess.run(['cp', '--sparse=always', r.arena, r.arena + '.whole'], check=True)
    with open(r.arena, 'r+b') as f:
        change(f)
    changed = read(r.arena)
    said = sluice('mount', '-f', '-o', 'memory=32M,persist=' + r.arena, r.source, r.mount)
    assert said.status, said.err
    assert read(r.arena) == changed, 'it was changed'
    os.rename(r.arena + '.whole', r.arena)
    r.serve()
    r.end()
    equal(read(os.path.join(r.source, 'f')), b'data')
    return said.err


def test_what_is_torn_or_foreign_is_refused():
    def put(offset, data):
        def change(f):
            f.seek(offset)
            f.write(data)
        return change
    for change, said in ((put(0, b'#!/bin/sh\n'), 'is no arena of Sluice'),
                         (put(8, b'\x09'), 'another version of Sluice'),
                         (put(80, b'?'), 'is torn: its header does not match'),
                         (lambda f: f.truncate(1 << 20), 'is torn: it is shorter')):
        with rig() as r:
            contains(refused_arena(r, change), r.arena, said)
    with rig() as r:
        write(r.arena, b'my thesis')
        said = sluice('mount', '-f', '-o', 'memory=32M,persist=' + r.arena, r.source, r.mount)
        contains(said.err, 'is no arena of Sluice; name a file that does not exist')
        equal(read(r.arena), b'my thesis')


def test_a_full_tmpfs_is_said():
    with rig() as r:
        small = os.path.join(r.folder, 'small')
        os.mkdir(small)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=16M', 'sluice-test', small], check=True)
        try:
            said = sluice('mount', '-f', '-o', 'memory=32M,persist=%s/a' % small, r.source, r.mount)
            equal(said.status, 1)
            contains(said.err, 'persist=%s/a' % small, 'No space left on device', 'it needs')
            equal(os.listdir(small), [])
        finally:
            subprocess.run(['umount', small], check=True)


program.main(globals())
