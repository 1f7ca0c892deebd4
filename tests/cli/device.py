# SPDX-License-Identifier: MIT
"""sluice device: a disk of known speed under a loop device and a real file system. What is counted
and what comes back is checked, never how long it took."""
import contextlib
import errno
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading

import mount_rig
import program
from mount_rig import sh
from program import SLUICE, Skip, contains, equal, refused, sluice

MIB = 1 << 20


def need_mounts():
    mount_rig.need_mounts()
    if not is_tmpfs('/dev/shm'):
        raise Skip('/dev/shm is no tmpfs')


def is_tmpfs(folder):
    with open('/proc/mounts') as f:
        return any(line.split()[1:3] == [folder, 'tmpfs'] for line in f)


def is_mounted(folder):
    with open('/proc/mounts') as f:
        return any(line.split()[1] == folder for line in f)


class Rig:
    """A folder on tmpfs, and whatever is mounted or attached in it: all gone at the end."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='sluice-device-', dir='/dev/shm')
        self.cleanups = []
        self.image = os.path.join(self.folder, 'image')
        self.mount = self.make_folder('dev')
        self.disk = os.path.join(self.mount, 'disk')

    def make_folder(self, name):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        return path

    def at_end(self, *words):
        self.cleanups.append(words)

    def serve(self, *words, backing=None):
        """Starts it; returns the process once the disk is there."""
        child = subprocess.Popen([SLUICE, 'device', '--iops', '100000', '--mbps', '2000', *words,
                                  backing or self.image, self.mount], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.at_end('umount', '-l', self.mount)
        self.at_end(child)
        line = child.stdout.readline().decode()
        if not line:
            raise AssertionError('it did not start: ' + child.stderr.read().decode())
        contains(line, self.disk + ': ')
        return child

    def stats(self):
        with open(os.path.join(self.mount, 'stats')) as f:
            return json.load(f)

    def loop(self):
        name = sh('losetup', '--find', '--show', '--direct-io=on', self.disk)
        self.at_end('losetup', '-d', name)
        return name

    def mount_fs(self, loop, name='fs'):
        path = os.path.join(self.folder, name)
        if not os.path.isdir(path):
            self.make_folder(name)
        sh('mount', loop, path)
        self.at_end('umount', '-l', path)
        return path

    def end_child(self, child):
        child.kill()
        child.wait()
        if child.stderr.closed:
            return
        for line in child.stderr.read().decode().splitlines():
            print('# ' + line)
        child.stdout.close()
        child.stderr.close()

    def finish(self):
        for words in reversed(self.cleanups):
            if isinstance(words[0], subprocess.Popen):
                self.end_child(words[0])
            else:
                subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def rig():
    need_mounts()
    r = Rig()
    try:
        yield r
    finally:
        r.finish()


def ends(child, status=0):
    out, err = child.communicate(timeout=60)
    equal((child.returncode, err.decode()), (status, ''))
    return out.decode()


@contextlib.contextmanager
def opened(path, flags=os.O_RDWR):
    fd = os.open(path, flags)
    try:
        yield fd
    finally:
        with contextlib.suppress(OSError):  # closing is a request, too
            os.close(fd)


def data(length, seed):
    block = hashlib.sha256(b'%d' % seed).digest() * 128
    return (block * (length // len(block) + 1))[:length]


def test_counts_each_request_and_keeps_the_bytes():
    with rig() as r:
        child = r.serve('--size', '8M')
        equal(sorted(os.listdir(r.mount)), ['disk', 'stats'])
        s = os.stat(r.disk)
        equal((s.st_size, stat.S_IMODE(s.st_mode)), (8 * MIB, 0o600))
        before = r.stats()
        equal([before[k] for k in ('reads', 'writes', 'flushes', 'discards', 'errors')], [0] * 5)
        equal((before['iops'], before['bytes_per_s'], before['size_bytes']),
              (100000, 2e9, 8 * MIB))
        with opened(r.disk) as fd:
            for i in range(10):
                equal(os.pwrite(fd, data(4096, i), i * 8192), 4096)
            equal(os.pwrite(fd, data(256 << 10, 99), 4 * MIB), 256 << 10)
            os.fsync(fd)
            for i in range(10):
                equal(os.pread(fd, 4096, i * 8192), data(4096, i))
                equal(os.pread(fd, 4096, i * 8192 + 4096), bytes(4096))
            equal(os.pread(fd, 256 << 10, 4 * MIB), data(256 << 10, 99))
            equal(os.pread(fd, 4096, 8 * MIB), b'')
            # the kernel keeps nothing: each read is a request
            equal(os.pread(fd, 4096, 0), os.pread(fd, 4096, 0))
        after = r.stats()
        equal((after['writes'], after['write_bytes']), (11, 10 * 4096 + (256 << 10)))
        equal((after['reads'], after['read_bytes']), (23, 22 * 4096 + (256 << 10)))
        equal((after['flushes'], after['errors'], after['in_flight']), (1, 0, 0))
        assert after['in_flight_max'] >= 1 and after['busy_ns'] > 0, after
        sh('umount', r.mount)
        equal(ends(child), '23 reads of 352256 bytes, 11 writes of 303104 bytes, 1 flushes, '
                           '0 discards, 0 failed\n')
        with open(r.image, 'rb') as f:
            equal(f.read()[4 * MIB:4 * MIB + (256 << 10)], data(256 << 10, 99))


def test_writes_of_several_wait_in_one_queue():
    """They do not wait for each other on the way, only in the disk."""
    with rig() as r:
        r.serve('--size', '1M', '--iops', '50')
        start = threading.Barrier(4)
        done = []

        def writer(number):
            with opened(r.disk) as fd:
                start.wait()
                for i in range(2):
                    done.append(os.pwrite(fd, data(4096, number), (2 * number + i) * 4096))

        threads = [threading.Thread(target=writer, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(done, [4096] * 8)
        stats = r.stats()
        equal((stats['writes'], stats['in_flight']), (8, 0))
        assert 2 <= stats['in_flight_max'] <= 4, stats
        assert stats['busy_ns'] >= 8 * 20000000, stats


def test_is_a_disk_and_no_file():
    with rig() as r:
        r.serve('--size', '1M')
        with opened(r.disk) as fd:
            for length, offset in ((100, 0), (512, 100), (4096, MIB - 512), (512, MIB)):
                try:
                    os.pwrite(fd, bytes(length), offset)
                    raise AssertionError('%d at %d was written' % (length, offset))
                except OSError as error:
                    equal(error.errno, errno.EINVAL)
            for call in (lambda: os.truncate(fd, 4096), lambda: os.open(r.disk, os.O_TRUNC)):
                try:
                    call()
                    raise AssertionError('it was cut off')
                except OSError as error:
                    equal(error.errno, errno.EINVAL)
        equal(r.stats()['errors'], 4)
        try:
            open(os.path.join(r.mount, 'new'), 'w')
            raise AssertionError('a file was made')
        except OSError:
            pass


def file_system(make, fs):
    if not shutil.which(make[0]):
        raise Skip(make[0] + ' is not installed')
    with open('/proc/filesystems') as f:
        if fs not in f.read().split():
            raise Skip('this kernel has no ' + fs)
    with rig() as r:
        child = r.serve('--size', '400M')
        loop = r.loop()
        sh(*make, loop)
        where = r.mount_fs(loop)
        contents = {'f%d' % i: data(MIB + 1000 * i, i) for i in range(20)}
        for name, text in contents.items():
            with open(os.path.join(where, name), 'wb') as f:
                f.write(text)
        sh('umount', where)
        stats = r.stats()
        # all of it went through, in writes of more than a page, and was made safe
        assert stats['write_bytes'] >= sum(len(t) for t in contents.values()), stats
        assert stats['writes'] < stats['write_bytes'] / 4096 / 4, stats
        assert stats['flushes'] >= 1 and stats['errors'] == 0, stats
        sh('losetup', '-d', loop)
        sh('umount', r.mount)
        ends(child)
        # another time, another process
        r.serve()
        loop = r.loop()
        where = r.mount_fs(loop)
        for name, text in contents.items():
            with open(os.path.join(where, name), 'rb') as f:
                assert f.read() == text, name
        assert r.stats()['reads'] > 0
        # deleted files free the memory of the backing
        used = os.stat(r.image).st_blocks
        for name in contents:
            os.unlink(os.path.join(where, name))
        sh('umount', where)  # what a journal holds on to is not free before
        sh('mount', loop, where)
        sh('fstrim', where)
        stats = r.stats()
        assert stats['discards'] > 0 and stats['discard_bytes'] > 20 * MIB, stats
        assert os.stat(r.image).st_blocks < used - 20 * MIB // 512, os.stat(r.image)


def test_carries_xfs():
    file_system(('mkfs.xfs', '-q', '-f'), 'xfs')


def test_carries_ext4():
    file_system(('mkfs.ext4', '-q', '-F', '-E', 'lazy_itable_init=0,lazy_journal_init=0'),
                'ext4')


def test_a_full_backing_is_an_error_and_no_hang():
    with rig() as r:
        small = r.make_folder('small')
        sh('mount', '-t', 'tmpfs', '-o', 'size=2M', 'none', small)
        r.at_end('umount', '-l', small)
        r.serve('--size', '8M', backing=os.path.join(small, 'image'))
        with opened(r.disk) as fd:
            written = 0
            try:
                while written < 8 * MIB:
                    written += os.pwrite(fd, data(256 << 10, 1), written)
                raise AssertionError('8 MiB fit into 2')
            except OSError as error:
                equal(error.errno, errno.ENOSPC)
            assert written <= 2 * MIB, written
            # what is there can be read, and discarding makes room
            equal(os.pread(fd, 4096, 0), data(4096, 1))
            sh('fallocate', '--punch-hole', '--offset', '0', '--length', str(MIB), r.disk)
            equal(os.pread(fd, 4096, 0), bytes(4096))
            equal(os.pwrite(fd, data(256 << 10, 2), 6 * MIB), 256 << 10)
        stats = r.stats()
        equal((stats['errors'], stats['discards'], stats['discard_bytes']), (1, 1, MIB))
        # through a block device it is an I/O error
        loop = r.loop()
        done = subprocess.run(['dd', 'if=/dev/zero', 'of=' + loop, 'bs=1M', 'oflag=direct'],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode, done.stdout
        assert r.stats()['errors'] > 1


def test_a_killed_one_leaves_errors_and_no_hang():
    with rig() as r:
        child = r.serve('--size', '8M')
        with opened(r.disk) as fd:
            equal(os.pwrite(fd, data(4096, 1), 0), 4096)
            child.send_signal(signal.SIGKILL)
            child.wait()
            for call in (lambda: os.pread(fd, 4096, 0), lambda: os.stat(r.disk),
                         lambda: os.listdir(r.mount)):
                try:
                    call()
                    raise AssertionError('somebody answered')
                except OSError as error:
                    assert error.errno in (errno.ENOTCONN, errno.ECONNABORTED), error
        sh('umount', r.mount)
        with open(r.image, 'rb') as f:
            equal(f.read(4096), data(4096, 1))


def test_signals_unmount():
    for number in (signal.SIGTERM, signal.SIGINT):
        with rig() as r:
            child = r.serve('--size', '8M')
            child.send_signal(number)
            contains(ends(child), '0 reads of 0 bytes')
            assert not is_mounted(r.mount)


def test_a_daemon_is_there_when_the_command_ends():
    with rig() as r:
        r.at_end('umount', '-l', r.mount)
        done = sluice('device', '--daemon', '--quiet', '--size=1M', r.image, r.mount)
        equal((done.status, done.out, done.err), (0, '', ''))
        equal(os.stat(r.disk).st_size, MIB)
        sh('umount', r.mount)
        assert not os.path.exists(r.disk)


def test_what_makes_no_sense_is_refused():
    for option in ('iops', 'mbps'):
        low = '1' if option == 'iops' else '0.001'
        high = '1000000000' if option == 'iops' else '1000000'
        for value in ('0', '-1', 'x', '1e30', 'nan'):
            refused(['device', '--' + option, value, 'a', 'b'],
                    'sluice device: --%s cannot be "%s", only %s to %s'
                    % (option, value, low, high))
    refused(['device', '--size', '1', 'a', 'b'],
            'sluice device: --size cannot be "1", only a size of at least 4096')
    refused(['device', '--latency-us=-1', 'a', 'b'],
            'sluice device: --latency-us cannot be "-1", only 0 to 60000000')
    refused(['device', 'a'], 'sluice device: a backing and a folder to mount on are needed')
    refused(['device', '--iop=3', 'a', 'b'],
            'sluice device: unknown option "--iop"; did you mean "--iops"?')


def test_places_that_cannot_be_are_refused():
    with rig() as r:
        def refuse(text, *words, status=2):
            done = sluice('device', *words)
            equal((done.status, done.out), (status, ''))
            contains(done.err, 'sluice device: ' + text)
            equal(len(done.err.splitlines()), 1)

        refuse(r.image + ': No such file or directory; with a size it would be made', r.image,
               r.mount, status=1)
        refuse('/dev/null: is neither a file nor a block device', '/dev/null', r.mount)
        refuse(r.folder + '/none: No such file or directory', '--size=1M', r.image,
               r.folder + '/none', status=1)
        with open(r.image, 'wb') as f:
            f.write(bytes(1 << 20))
        refuse(r.image + ': Not a directory', r.image, r.image, status=1)
        refuse(r.image + ': has 1048576 bytes already', '--size=512k', r.image, r.mount)
        # /proc has neither direct I/O nor pages that stay clean
        refuse('/proc/self/comm: the file system cannot write past the page cache',
               '/proc/self/comm', r.mount)
        assert not is_mounted(r.mount)


def test_what_comes_to_nothing_leaves_nothing():
    with rig() as r:
        nowhere = os.path.join(r.folder, 'nowhere')
        refused(['device', '--size', '1M', r.image, nowhere],
                'sluice device: %s: No such file or directory' % nowhere, status=1)
        equal(os.path.exists(r.image), False)
        with open(r.image, 'wb') as f:
            f.write(bytes(1 << 20))
        refused(['device', r.image, nowhere],
                'sluice device: %s: No such file or directory' % nowhere, status=1)
        equal(os.path.getsize(r.image), 1 << 20)


def test_a_backing_is_one_disk_at_a_time():
    with rig() as r:
        child = r.serve('--size', '1M')
        other = r.make_folder('other')
        refused(['device', r.image, other],
                'sluice device: %s: is in use by another sluice device' % r.image, status=1)
        sh('umount', r.mount)
        equal(child.wait(30), 0)
        r.serve()


program.main(globals())
