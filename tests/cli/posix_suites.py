# SPDX-License-Identifier: MIT
"""More scenes, as those of posix_scenes.py: what suites of tests for file systems look at."""
import ctypes
import errno
import fcntl
import os
import random
import shutil
import stat
import struct
import subprocess

from posix_matrix import AT_FDCWD, CAPABILITY, call
from posix_scenes import PAGE, in_child, opened, said


# --- times

def times_of(path):
    """Access and modification as statx(2) has them, which know no limits of words."""
    s = ctypes.create_string_buffer(256)
    call('statx', AT_FDCWD, path, 0, 0xfff, s)
    return struct.unpack_from('qI', s, 0x40), struct.unpack_from('qI', s, 0x70)


def set_times(path, seconds):
    call('utimensat', AT_FDCWD, path, (ctypes.c_long * 4)(seconds, 7, seconds, 9), 0)
    return times_of(path)


FAR = (0, -1, -(1 << 31), -(1 << 31) - 1, -(1 << 33), 1 << 31, 1 << 32, 9223372036, 9223372037,
       15032385535, 15032385536, 16299260424, 16299260425, 1 << 40, 1 << 62, -(1 << 62))


def times_that_are_far_off(d):
    fd, found = opened(d + '/f', content=b'content'), []
    for seconds in FAR:
        found.append(set_times(d + '/f', seconds))
        os.fsync(fd)
        found.append(times_of(d + '/f'))
    for seconds in (1 << 33, 1 << 40):  # with data that is not yet written
        os.pwrite(fd, b'more', 0)
        set_times(d + '/f', seconds)
        os.fsync(fd)
        found.append(times_of(d + '/f'))
        os.pwrite(fd, b'more', 0)
        found.append(times_of(d + '/f')[0])
    return found


def what_is_later_has_no_earlier_time(d):
    """Though times of what was looked at may be finer than others."""
    backwards = 0
    for i in range(20):
        a, b, last = opened(d + '/a%d' % i), opened(d + '/b%d' % i), 0
        for _ in range(5):
            for moment in (lambda: os.write(a, b'a') and os.fstat(a).st_mtime_ns,
                           lambda: os.fchmod(b, 0o600) or os.fstat(b).st_ctime_ns,
                           lambda: os.write(b, b'b') and os.fstat(b).st_mtime_ns,
                           lambda: os.utime(a) or os.fstat(a).st_mtime_ns,
                           lambda: os.link(d + '/a%d' % i, d + '/l') or
                           os.fstat(a).st_ctime_ns,
                           lambda: os.unlink(d + '/l') or os.stat(d).st_mtime_ns):
                now = moment()
                backwards += now < last
                last = now
        os.close(a)
        os.close(b)
    return backwards


def reads_that_leave_no_trace(d):
    fd = opened(d + '/f', content=b'content')
    os.utime(fd, ns=(5, 10 ** 18))
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NOATIME)
    return os.pread(fd, 4, 2), os.fstat(fd).st_atime_ns


# --- room

def room_that_was_asked_for_stays(d):
    """Past the end, until the file is cut off."""
    blocks = lambda: os.stat(d + '/f').st_blocks >= 2048
    fd, found = opened(d + '/f'), []
    call('fallocate', fd, 1, 0, 1 << 20)
    for i in range(3):
        os.pwrite(fd, b'x' * 5000, 5000 * i)
        os.fsync(fd)
        os.close(fd)
        found.append(blocks())
        fd = opened(d + '/f')
    os.ftruncate(fd, 15000)
    os.close(fd)
    return found, blocks(), os.stat(d + '/f').st_size


def holes_stay_holes(d):
    fd, r, pages = opened(d + '/f'), random.Random(4), set()
    for _ in range(60):
        at, length = r.randrange(0, 4 << 20), r.randrange(1, 9000)
        os.pwrite(fd, b'y' * length, at)
        pages.update(range(at // PAGE, (at + length - 1) // PAGE + 1))
    os.fsync(fd)
    os.close(fd)
    # some file systems take a little more by themselves
    return os.stat(d + '/f').st_blocks * 512 <= len(pages) * PAGE * 2


def a_member_of_the_group_writes(d):
    """Set-group-id of what the group may not execute stays then."""
    found = []
    for name, mode in (('a', 0o2644), ('b', 0o2755), ('c', 0o4644)):
        path = os.path.join(d, name)
        os.close(opened(path))
        os.chown(path, 1001, 1001)
        os.chmod(path, mode)
        found.append(in_child(as_somebody,
                              lambda path=path: os.write(os.open(path, os.O_WRONLY), b'x' * 9000)))
        found.append(oct(os.stat(path).st_mode))
    return found


def root_writes_to_what_has_capabilities(d):
    """They go; set-user-id stays, but not after a change of the owner, if only to himself."""
    found = []
    for name, act in (('write', lambda path: os.write(os.open(path, os.O_WRONLY), b'x')),
                      ('append', lambda path: os.write(os.open(path, os.O_WRONLY | os.O_APPEND),
                                                       b'x' * 9000)),
                      ('truncate', lambda path: os.truncate(path, 1)),
                      ('chown', lambda path: os.chown(path, 0, 0)),
                      ('nothing after', lambda path: (os.removexattr(path, 'security.capability'),
                                                      in_child(os.chown, path, -1, -1)))):
        path = os.path.join(d, name)
        os.close(opened(path, content=b'content'))
        os.setxattr(path, 'security.capability', CAPABILITY)
        os.chmod(path, 0o6755)
        found += [said(lambda: act(path)), oct(os.stat(path).st_mode),
                  said(lambda: os.getxattr(path, 'security.capability'))]
    return found


# --- sources that have been mounted with limits

def prepare_limited(d):
    for name, mode in (('id', 0o4755), ('f', 0o666)):
        shutil.copy('/usr/bin/id', os.path.join(d, name))
        os.chmod(os.path.join(d, name), mode)
    os.mknod(d + '/null', stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.chmod(d, 0o755)


def what_is_allowed(d):
    """Changes nothing, also where all is allowed."""
    ran = subprocess.run(['setpriv', '--reuid=1001', '--clear-groups', d + '/id', '-u'],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = [ran.returncode, ran.stdout, os.statvfs(d).f_flag & 0xf]
    for act in (lambda: os.close(os.open(d + '/null', os.O_WRONLY)),
                lambda: os.close(os.open(d + '/f', os.O_WRONLY)),
                lambda: os.unlink(d + '/none'), lambda: os.mkdir(d + '/f'),
                lambda: os.chmod(d + '/f', 0o666), lambda: os.link(d + '/f', d + '/id'),
                lambda: os.access(d + '/f', os.W_OK), lambda: os.access(d, os.W_OK),
                lambda: os.access(d + '/id', os.X_OK), lambda: os.access(d + '/null', os.W_OK)):
        found.append((said(act), in_child(as_somebody, act)))
    return found


def as_somebody(act):
    os.setgroups([])
    os.setgid(1001)
    os.setuid(1001)
    act()


def fill(path):
    """Until there is no room for a page more."""
    fd, size = os.open(path, os.O_WRONLY | os.O_CREAT), 65536
    while size >= PAGE:
        try:
            os.write(fd, bytes(size))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            size //= 2
    os.close(fd)


SCENES = [
    times_that_are_far_off, what_is_later_has_no_earlier_time, reads_that_leave_no_trace,
    room_that_was_asked_for_stays, holes_stay_holes, a_member_of_the_group_writes,
    root_writes_to_what_has_capabilities,
]
