# SPDX-License-Identifier: MIT
"""The end of a mount, and what goes wrong on its source: sluice umount waits until all is safe and
says what is not; a source that fails, is full, or is in use twice; a daemon without rights."""
import ast
import ctypes
import errno
import fcntl
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time
import traceback

import program
from mount_rig import ends, is_mounted, need_mounts, rig, sh, traced
from program import SLUICE, Skip, contains, equal, sluice

MIB = 1 << 20
LAZY = 'memory=64M,dirty_writeback_centisecs=0,dirty_background_ratio=80,dirty_ratio=90'
NOBODY = 65534
LIBC = ctypes.CDLL(None, use_errno=True)


def said(function, *words):
    try:
        return function(*words)
    except OSError as error:
        return errno.errorcode[error.errno]


def make_disk(r, size='64M', options='loop'):
    """A file system of its own, on a loop device."""
    image, folder = os.path.join(r.folder, 'image'), r.make_folder('disk')
    sh('truncate', '-s', size, image)
    sh('mkfs.ext4', '-qF', image)
    try:
        sh('mount', '-o', options, image, folder)
    except AssertionError as error:
        raise Skip('no loop device: %s' % error)
    r.mounts.append(folder)
    return folder


def break_disk(folder):
    """What is written to it from now on fails: EXT4_IOC_SHUTDOWN, without a last flush."""
    fd = os.open(folder, os.O_RDONLY)
    fcntl.ioctl(fd, 0x8004587d, struct.pack('i', 2))
    os.close(fd)


def write(path, content, offset=0):
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, content, offset)
    os.close(fd)


def test_umount_returns_when_all_is_safe():
    with rig() as r:
        child = r.serve(LAZY)
        write(os.path.join(r.mount, 'f'), b'x' * 8 * MIB)
        done = sluice('umount', r.mount)
        equal((done.status, done.out, done.err), (0, '', ''))
        assert not is_mounted(r.mount)
        equal(os.stat(os.path.join(r.source, 'f')).st_blocks >= 8 * MIB // 512, True)
        equal(ends(child), '')


def test_umount_leaves_alone_what_is_in_use_or_no_mount():
    with rig() as r:
        child = r.serve()
        with open(os.path.join(r.mount, 'f'), 'w'):
            done = sluice('umount', r.mount)
            equal((done.status, done.err),
                  (1, 'sluice umount: %s: programs have files open there\n' % r.mount))
            assert is_mounted(r.mount)
        done = sluice('umount', r.plain)
        equal((done.status, done.err),
              (1, 'sluice umount: %s: is not where a sluice mount is\n' % r.plain))
        f = open(os.path.join(r.mount, 'f'), 'w')
        equal(sluice('umount', '--lazy', r.mount).status, 0)
        assert not is_mounted(r.mount)
        f.write('late')
        f.close()
        equal(ends(child), '')
        with open(os.path.join(r.source, 'f')) as f:
            equal(f.read(), 'late')


def test_the_helper_of_umount():
    with rig() as r:
        helper = os.path.join(r.folder, 'umount.fuse.sluice')
        os.symlink(SLUICE, helper)
        child = r.serve(LAZY)
        write(os.path.join(r.mount, 'f'), b'x' * MIB)
        sh(helper, r.mount, '-n', '-t', 'fuse.sluice')
        assert not is_mounted(r.mount)
        equal(ends(child), '')


def test_umount_of_a_killed_daemon_says_so():
    with rig() as r:
        child = r.serve()
        child.send_signal(signal.SIGKILL)
        child.wait()
        done = sluice('umount', r.mount)
        equal((done.status, done.err), (1, 'sluice umount: %s: its daemon has gone\n' % r.mount))
        assert not is_mounted(r.mount)


def test_data_that_cannot_be_written_is_kept_and_then_named():
    with rig() as r:
        disk = make_disk(r)
        child = r.serve(LAZY, source=disk)
        f = os.path.join(r.mount, 'f')
        write(f, b'x' * MIB)
        equal(sluice('sync', r.mount).status, 0)
        write(f, b'y' * 8192, 4096)
        fd = os.open(f, os.O_RDONLY)
        break_disk(disk)
        equal([said(os.fsync, fd), said(os.fsync, fd)], ['EIO', 'EIO'])
        equal(os.pread(fd, 3, 5000), b'yyy')
        equal(said(os.open, f + '2', os.O_CREAT), 'EIO')
        os.close(fd)
        done = sluice('sync', r.mount)
        equal((done.status, done.err),
              (1, 'sluice sync: %s: Input/output error\n' % r.mount))
        done = sluice('umount', r.mount)
        equal((done.status, done.err), (
            1, 'sluice umount: %s: not unmounted, since not all can be written: Input/output '
            'error\n' % r.mount))
        assert is_mounted(r.mount)
        done = sluice('umount', '--force', r.mount)
        lost = '%s/f: 8192 bytes could not be written: Input/output error\n' % disk
        equal((done.status, done.err), (
            1, lost + 'not all could be written\n'
            'sluice umount: %s: it is unmounted, and this is lost\n' % r.mount))
        text = ends(child, 1)
        contains(text, 'sluice mount: ' + lost)


def test_an_aborted_connection_ends_it_as_unmounting_does():
    with rig() as r:
        # who is traced cannot look for leaks
        child = r.serve(LAZY, env=dict(os.environ, ASAN_OPTIONS='detect_leaks=0'))
        write(os.path.join(r.mount, 'f'), b'x' * MIB)
        with traced(child, '-o', os.path.join(r.folder, 'calls'), '-P', '/dev/fuse',
                    '-e', 'inject=read:error=ECONNABORTED'):
            equal(ends(child), '')
        with open(os.path.join(r.source, 'f'), 'rb') as f:
            equal(f.read(), b'x' * MIB)
        assert not is_mounted(r.mount)


def test_a_source_may_be_unmounted_only_when_it_is_not_served():
    with rig() as r:
        small = r.mount_tmpfs(4 * MIB)
        child = r.serve(source=small)
        write(os.path.join(r.mount, 'f'), b'x')
        try:
            sh('umount', small)
            raise AssertionError('the source was unmounted under it')
        except AssertionError as error:
            contains(str(error), 'busy')
        sh('umount', '-l', small)
        write(os.path.join(r.mount, 'f'), b'yz')
        with open(os.path.join(r.mount, 'f')) as f:
            equal(f.read(), 'yz')
        equal(sluice('umount', r.mount).status, 0)
        equal(ends(child), '')


# --- rights

def status_of(pid):
    for task in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/status' % (pid, task)) as f:
            yield dict(line.rstrip('\n').split(':\t', 1) for line in f if ':\t' in line)


def test_the_daemon_of_root_gives_up_what_it_does_not_need():
    with rig() as r:
        child = r.serve()
        write(os.path.join(r.mount, 'f'), b'x')
        for s in status_of(child.pid):
            for which in ('CapPrm', 'CapEff', 'CapBnd'):
                bits = int(s[which], 16)
                # no raw I/O, modules, tracing, boot, time, network, resources, kill, leases
                for gone in (5, 12, 13, 16, 17, 19, 22, 24, 25, 28):
                    equal((s['Name'], which, gone, bits >> gone & 1),
                          (s['Name'], which, gone, 0))
            equal(s['NoNewPrivs'], '1')


def as_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def of_nobody(function, *words):
    """What it returns in a process of his."""
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        as_nobody()
        with open(writable, 'w') as f:
            f.write(repr(said(function, *words)))
        os._exit(0)
    os.close(writable)
    with open(readable) as f:
        text = f.read()
    os.waitpid(child, 0)
    return ast.literal_eval(text)


def his_work(folder):
    os.chdir(folder)
    os.makedirs('a/b')
    write('a/f', b'his')
    os.chmod('a/f', 0o4750)
    os.rename('a/f', 'a/b/g')
    os.setxattr('a/b/g', 'user.x', b'v')
    os.symlink('a', 'l')
    with open('l/b/g', 'a') as f:
        f.write(' own')
    with open('l/b/g') as f:
        text = f.read()
    mode = oct(os.stat('a/b/g').st_mode)
    os.mkdir('closed', 0)
    return text, mode, said(os.chown, 'a/b/g', 0, 0), [
        os.getxattr('a/b/g', 'user.x'), os.readlink('l'), said(os.listdir, 'closed')]


def until_full(path):
    written = 0
    try:
        with open(path, 'wb', buffering=0) as f:
            while written < 4 * MIB:
                written += f.write(bytes(65536))
    except OSError as error:
        return errno.errorcode[error.errno], written <= MIB
    return 'never full'


def in_own_namespace(function):
    """Where everybody may use /dev/fuse, as on most systems."""
    child = os.fork()
    if not child:
        status = 1
        try:
            if LIBC.unshare(0x20000):
                raise OSError(ctypes.get_errno(), 'unshare')
            sh('mount', '--make-rprivate', '/')
            os.mknod('fuse', stat.S_IFCHR | 0o666, os.makedev(10, 229))
            os.chmod('fuse', 0o666)
            sh('mount', '--bind', 'fuse', '/dev/fuse')
            function()
            status = 0
        except Skip as reason:
            print('# skip: %s' % reason)
            status = 77
        except BaseException:
            print(traceback.format_exc().replace('\n', '\n# '))
        finally:
            sys.stdout.flush()
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 77:
        raise Skip('see above')
    equal(status, 0)


def test_a_daemon_of_another_user_serves_him_alone():
    if not shutil.which('fusermount3'):
        raise Skip('fusermount3 is not installed')
    need_mounts()
    in_own_namespace(another_user)


def another_user():
    with rig() as r:
        os.chmod(r.folder, 0o755)
        for folder in (r.source, r.mount):
            os.chown(folder, NOBODY, NOBODY)
        program_ = os.path.join(r.folder, 'sluice')  # which he may execute
        shutil.copy(SLUICE, program_)
        child = subprocess.Popen([program_, 'mount', '-f', '-o', 'memory=32M', r.source, r.mount],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, preexec_fn=as_nobody, cwd='/')
        r.children.append(child)
        r.mounts.append(r.mount)
        while not is_mounted(r.mount):
            if child.poll() is not None:
                raise Skip('he may not mount here: ' + child.stderr.read().decode().strip())
        equal(said(os.listdir, r.mount), 'EACCES')
        equal(of_nobody(his_work, r.mount),
              ('his own', '0o100750', 'EPERM', [b'v', 'a', 'EACCES']))
        equal(subprocess.run([program_, 'sync', r.mount], preexec_fn=as_nobody).returncode, 0)
        s = os.stat(os.path.join(r.source, 'a/b/g'))
        equal((s.st_uid, s.st_size, oct(s.st_mode)), (NOBODY, 7, '0o100750'))
        equal(subprocess.run([program_, 'umount', r.mount], preexec_fn=as_nobody).returncode, 0)
        equal(ends(child), '')
        child = subprocess.Popen([program_, 'mount', '-f', '-o', 'memory=32M', r.source, r.mount],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, preexec_fn=as_nobody, cwd='/')
        r.children.append(child)
        while not is_mounted(r.mount):
            assert child.poll() is None
        child.send_signal(signal.SIGTERM)
        equal(ends(child), '')
        assert not is_mounted(r.mount)


def test_quotas_hold_for_those_who_have_them():
    for tool in ('quotacheck', 'setquota'):
        if not shutil.which(tool):
            raise Skip('quota is not installed')
    with rig() as r:
        image, disk = os.path.join(r.folder, 'image'), r.make_folder('disk')
        sh('truncate', '-s', '64M', image)
        sh('mkfs.ext4', '-qF', '-O', 'quota', image)
        try:
            sh('mount', '-o', 'loop,usrquota', image, disk)
        except AssertionError as error:
            raise Skip('no file systems with quotas: %s' % error)
        r.mounts.append(disk)
        os.chmod(disk, 0o777)
        os.chmod(r.folder, 0o755)
        try:
            sh('setquota', '-u', str(NOBODY), '0', '1024', '0', '0', disk)
        except AssertionError as error:
            raise Skip('quotas cannot be set: %s' % error)
        child = r.serve(source=disk)
        equal(of_nobody(until_full, os.path.join(r.mount, 'f')), ('EDQUOT', True))
        write(os.path.join(r.mount, 'of_root'), b'x' * 2 * MIB)
        equal(sluice('umount', r.mount).status, 0)
        equal(ends(child), '')


# --- what the kernel is told, and what it costs to do nothing

def test_the_kernel_reads_ahead_whole_requests():
    with rig() as r:
        r.serve()
        number = os.stat(r.mount).st_dev
        path = '/sys/class/bdi/%d:%d/read_ahead_kb' % (os.major(number), os.minor(number))
        if not os.access(path, os.W_OK):
            raise Skip('/sys cannot be written to')
        with open(path) as f:
            equal(f.read(), '1024\n')


def switches(pid):
    return {(s['Name'], s['Pid']): int(s['voluntary_ctxt_switches']) for s in status_of(pid)}


def test_an_idle_mount_does_not_wake_up():
    with rig() as r:
        child = r.serve()
        write(os.path.join(r.mount, 'f'), b'x' * 8 * MIB)
        equal(sluice('sync', r.mount).status, 0)
        # threads of a ring that have nothing to do look around every five seconds; and what the
        # work left behind comes to an end first
        for _ in range(5):
            before = switches(child.pid)
            time.sleep(6)
            after = switches(child.pid)
            if before == after:
                return
        equal(after, before)


# --- from fstab, and as a unit

def test_fstab_finds_it_by_the_helper_of_fuse():
    if not os.path.exists('/sbin/mount.fuse3'):
        raise Skip('mount.fuse3 is not installed')
    with rig() as r:
        helper = os.path.join(r.folder, 'mount.sluice')
        os.symlink(SLUICE, helper)
        table = os.path.join(r.folder, 'fstab')
        with open(table, 'w') as f:
            f.write('%s#%s %s fuse3 memory=32M,noauto,nofail 0 0\n'
                    % (helper, r.source, r.mount))
        r.mounts.append(r.mount)
        sh('mount', '-T', table, r.mount)
        equal(json.loads(sluice('stat', '--json', r.mount).out)['memory_bytes'], 32 * MIB)
        equal(sluice('umount', r.mount).status, 0)


def test_the_unit_in_the_manual_is_one():
    if not shutil.which('systemd-analyze'):
        raise Skip('systemd-analyze is not installed')
    with open(os.path.join(program.ROOT, 'docs', 'man', 'sluice-mount.1')) as f:
        text = f.read()
    unit = text[text.index('[Unit]'):text.index('.Ed', text.index('[Unit]'))]
    unit = unit.replace('/usr/bin/sluice', SLUICE)
    with open('data.service', 'w') as f:
        f.write(unit)
    equal(sh('systemd-analyze', 'verify', '--man=no', os.path.abspath('data.service'),
             env=dict(os.environ, SYSTEMD_LOG_LEVEL='warning')), '')


program.main(globals())
