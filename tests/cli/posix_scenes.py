# SPDX-License-Identifier: MIT
"""Scenes: what a program may do on a file system beyond single calls. Each is a function of a folder
of its own, whose result does not depend on the moment nor on the machine, so that two file systems
can be compared. It may be called by root only."""
import ctypes
import errno
import fcntl
import mmap
import os
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess

from posix_matrix import AT_FDCWD, LIBC, call

PAGE = mmap.PAGESIZE
MIB = 1 << 20


def said(function, *words):
    """What came of it: a value, or the name of an error."""
    try:
        return function(*words)
    except OSError as error:
        return errno.errorcode.get(error.errno, error.errno)


def in_child(function, *words):
    """Exit status of a process that does it: 0, an errno, or minus the signal that ended it."""
    child = os.fork()
    if not child:
        status = 255
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            function(*words)
            status = 0
        except OSError as error:
            status = error.errno
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def opened(path, flags=os.O_RDWR | os.O_CREAT, content=b''):
    fd = os.open(path, flags, 0o644)
    if content:
        os.write(fd, content)
    return fd


def errno_of(rc):
    return errno.errorcode[ctypes.get_errno()] if rc < 0 else rc


# --- locks

def lock_words(kind, length=0):
    return struct.pack('hhqqi', kind, os.SEEK_SET, 0, length, 0)


def locks_of_processes(d):
    fd, results = opened(d + '/f', content=b'x' * 100), []
    for command in (fcntl.F_SETLK, fcntl.F_OFD_SETLK):
        for ours in (fcntl.F_RDLCK, fcntl.F_WRLCK):
            fcntl.fcntl(fd, command, lock_words(ours, 10))
            for theirs in (fcntl.F_RDLCK, fcntl.F_WRLCK):
                for start in (0, 50):
                    words = struct.pack('hhqqi', theirs, os.SEEK_SET, start, 5, 0)
                    results.append(in_child(lambda w=words: fcntl.fcntl(
                        opened(d + '/f'), fcntl.F_SETLK, w)))
            fcntl.fcntl(fd, command, lock_words(fcntl.F_UNLCK))
    os.close(fd)
    return results


def locks_of_files(d):
    fd, results = opened(d + '/f'), []
    for ours in (fcntl.LOCK_SH, fcntl.LOCK_EX):
        fcntl.flock(fd, ours)
        for theirs in (fcntl.LOCK_SH, fcntl.LOCK_EX):
            results.append(in_child(lambda t=theirs: fcntl.flock(opened(d + '/f'),
                                                                 t | fcntl.LOCK_NB)))
    os.close(fd)
    results.append(in_child(lambda: fcntl.flock(opened(d + '/f'), fcntl.LOCK_EX | fcntl.LOCK_NB)))
    return results


def a_lock_goes_with_any_close(d):
    fd = opened(d + '/f')
    fcntl.fcntl(fd, fcntl.F_SETLK, lock_words(fcntl.F_WRLCK))
    os.close(opened(d + '/f'))
    return in_child(lambda: fcntl.fcntl(opened(d + '/f'), fcntl.F_SETLK,
                                        lock_words(fcntl.F_WRLCK)))


def a_lock_is_waited_for(d):
    fd = opened(d + '/f')
    fcntl.fcntl(fd, fcntl.F_SETLK, lock_words(fcntl.F_WRLCK))
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        os.write(writable, b'a')
        fcntl.fcntl(opened(d + '/f'), fcntl.F_SETLKW, lock_words(fcntl.F_WRLCK))
        os.write(writable, b'b')
        os._exit(0)
    os.read(readable, 1)
    os.set_blocking(readable, False)
    early = said(os.read, readable, 1)
    os.close(fd)
    os.waitpid(child, 0)
    return early, os.read(readable, 1)


# --- data

def appends_of_two_processes(d):
    def append(letter):
        fd = os.open(d + '/f', os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for i in range(300):
            os.write(fd, letter * (50 + i))

    children = []
    for letter in (b'a', b'b', b'c'):
        child = os.fork()
        if not child:
            append(letter)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    with open(d + '/f', 'rb') as f:
        text = f.read()
    return len(text), {c: text.count(bytes([c])) for c in b'abc'}


def sizes_are_seen_at_once(d):
    fd = opened(d + '/f')
    readable, writable = os.pipe()
    back, forth = os.pipe()
    child = os.fork()
    if not child:
        for _ in range(50):
            os.read(back, 1)
            os.write(writable, b'%10d' % os.stat(d + '/f').st_size)
        os._exit(0)
    seen = []
    for i in range(50):
        os.pwrite(fd, b'x' * i, i * 1000)
        os.write(forth, b'x')
        seen.append(int(os.read(readable, 10)))
    os.waitpid(child, 0)
    return seen


def limits_of_sizes(d):
    def limited(function):
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
        function(opened(d + '/f', content=b'x' * 9000))

    def ignoring(function):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limited(function)

    return [in_child(how, what) for how in (limited, ignoring) for what in (
        lambda fd: os.pwrite(fd, b'x', 20000), lambda fd: os.ftruncate(fd, 20000),
        lambda fd: os.posix_fallocate(fd, 0, 20000), lambda fd: os.pwrite(fd, b'x', 9999),
        lambda fd: os.write(fd, b'y' * 1000), lambda fd: os.ftruncate(fd, 10))], \
        os.stat(d + '/f').st_size


def sparse_and_far(d):
    fd, results = opened(d + '/f'), []
    for at in (1 << 31, 1 << 32, 3 << 40, (1 << 43) - 8192):
        results += [os.pwrite(fd, b'far', at), os.fstat(fd).st_size, os.pread(fd, 5, at - 1),
                    os.lseek(fd, at - MIB, os.SEEK_DATA) - at, os.lseek(fd, at, os.SEEK_HOLE) - at]
    for at in (1 << 44, 1 << 50, (1 << 63) - 2):
        results += [said(os.pwrite, fd, b'far', at), said(os.ftruncate, fd, at)]
    results += [said(os.pread, fd, 5, (1 << 63) - 2),
                said(os.lseek, fd, 1 << 45, os.SEEK_DATA), os.fstat(fd).st_blocks <= 64]
    os.ftruncate(fd, 1 << 40)
    results.append(os.lseek(fd, 0, os.SEEK_END))
    os.close(fd)
    return results


def what_makes_no_sense(d):
    fd, ro, wo = opened(d + '/f', content=b'x' * 9000), opened(d + '/f', os.O_RDONLY), \
        opened(d + '/f', os.O_WRONLY)
    folder = os.open(d, os.O_RDONLY)
    return [said(*words) for words in (
        (os.write, ro, b'x'), (os.read, wo, 1), (os.read, folder, 1), (os.ftruncate, ro, 1),
        (os.ftruncate, folder, 1), (os.lseek, fd, -1, 0), (os.lseek, fd, 9000, os.SEEK_DATA),
        (os.lseek, fd, 9001, os.SEEK_HOLE), (os.lseek, fd, 0, 77), (os.pwrite, fd, b'', 0),
        (os.pread, fd, 0, 5), (os.posix_fallocate, fd, 0, 0), (os.posix_fallocate, ro, 0, 9),
        (os.posix_fallocate, folder, 0, 9), (os.fsync, folder), (os.fdatasync, folder),
        (os.fsync, ro), (os.lseek, folder, 0, 0), (mmap.mmap, wo, 10), (os.fchmod, ro, 0o600),
        (lambda: mmap.mmap(ro, 10, prot=mmap.PROT_WRITE),), (os.fchdir, fd),
        (os.posix_fadvise, fd, 0, 0, os.POSIX_FADV_WILLNEED), (os.open, d + '/f/x', os.O_RDONLY),
        (os.sendfile, fd, ro, 0, 100), (os.sendfile, folder, ro, 0, 100),
        (os.copy_file_range, fd, fd, 100, 0, 50), (os.copy_file_range, ro, fd, 100, 0, 8000),
        (os.copy_file_range, fd, ro, 100, 0, 8000), (os.copy_file_range, ro, fd, 100, 9200, 0),
        (os.preadv, fd, [bytearray(10), bytearray(20)], 5),
        (os.pwritev, fd, [b'ab', b'', b'cd'], 3, os.RWF_APPEND))]


def memory_past_the_end(d):
    fd = opened(d + '/f', content=b'x' * 3 * PAGE)
    m = mmap.mmap(fd, 3 * PAGE)
    os.ftruncate(fd, PAGE + 10)

    def shrunk():
        os.ftruncate(fd, 10)
        return m[PAGE]

    return [in_child(lambda: m[PAGE + 5]), m[PAGE + 10:PAGE + 20], in_child(lambda: m[2 * PAGE]),
            in_child(lambda: m.__setitem__(2 * PAGE, 1)), in_child(shrunk),
            os.fstat(fd).st_size, m[5:15]]


def memory_and_calls_agree(d):
    fd, results = opened(d + '/f', content=b'a' * 3 * PAGE), []
    m, private = mmap.mmap(fd, 3 * PAGE), mmap.mmap(fd, 3 * PAGE, flags=mmap.MAP_PRIVATE)
    m[PAGE:PAGE + 3] = b'map'
    results.append(os.pread(fd, 6, PAGE - 1))
    os.pwrite(fd, b'call', 2 * PAGE)
    results.append(m[2 * PAGE - 1:2 * PAGE + 6])
    private[0:7] = b'private'
    results += [os.pread(fd, 7, 0), m[:7], private[:7], private[PAGE:PAGE + 3]]
    child = os.fork()
    if not child:
        m[7:12] = b'child'
        with open(d + '/f', 'r+b') as f:
            f.seek(20)
            f.write(b'there')
        os._exit(0)
    os.waitpid(child, 0)
    results += [os.pread(fd, 20, 5), m[18:26]]
    m.close()
    private.close()
    os.close(fd)
    with open(d + '/f', 'rb') as f:
        results.append(f.read()[:30])
    return results


def mapped_writes_move_the_time(d):
    fd = opened(d + '/f', content=b'a' * PAGE)
    os.utime(d + '/f', ns=(10 ** 18, 10 ** 18))
    m = mmap.mmap(fd, PAGE)
    m[0] = 1
    m.flush()
    m.close()
    os.close(fd)
    return os.stat(d + '/f').st_mtime_ns > 10 ** 18


def direct_beside_buffered(d):
    fd, direct = opened(d + '/f', content=b'b' * 8 * PAGE), opened(d + '/f',
                                                                   os.O_RDWR | os.O_DIRECT)
    page, results = mmap.mmap(-1, PAGE), []
    page[:] = b'd' * PAGE
    results.append(os.pwrite(direct, page, 2 * PAGE))
    results.append(os.pread(fd, 4, 2 * PAGE - 2))
    os.pwrite(fd, b'buffered', 3 * PAGE)
    results.append(os.preadv(direct, [page], 3 * PAGE))
    results.append(page[:10])
    results.append(os.preadv(direct, [page], 8 * PAGE))
    return results


# --- folders

def many_names(d):
    for i in range(700):
        os.close(os.open('%s/%04d' % (d, i), os.O_CREAT))
    found, streams = [sorted(os.listdir(d)) == ['%04d' % i for i in range(700)]], []
    with os.scandir(d) as entries:
        for i, entry in enumerate(entries):
            os.unlink(entry.path)
            streams.append(entry.name)
    found += [len(set(streams)), len(streams), os.listdir(d)]
    return found


class Entry(ctypes.Structure):
    _fields_ = [('ino', ctypes.c_ulong), ('off', ctypes.c_long), ('reclen', ctypes.c_ushort),
                ('type', ctypes.c_ubyte), ('name', ctypes.c_char * 256)]


def places_in_a_folder(d):
    LIBC.opendir.restype = LIBC.readdir.restype = ctypes.c_void_p
    LIBC.telldir.restype = ctypes.c_long
    for i in range(500):
        os.close(os.open('%s/%04d' % (d, i), os.O_CREAT))
    stream = ctypes.c_void_p(LIBC.opendir(os.fsencode(d)))

    def read():
        at = LIBC.readdir(stream)
        return Entry.from_address(at).name if at else None

    order, places = [], []
    while True:
        places.append(LIBC.telldir(stream))
        name = read()
        if name is None:
            break
        order.append(name)
    found = [len(order), len(set(order))]
    for i in (400, 3, 499, 0, 250):
        LIBC.seekdir(stream, ctypes.c_long(places[i]))
        found.append(read() == order[i])
    for i in range(0, 500, 2):
        os.unlink('%s/%04d' % (d, i))
    LIBC.rewinddir(stream)
    rest = []
    while True:
        name = read()
        if name is None:
            break
        rest.append(name)
    LIBC.closedir(stream)
    return found, len(rest), len(set(rest))


def deep(d):
    here = os.getcwd()
    try:
        os.chdir(d)
        for _ in range(60):
            os.mkdir('n' * 100)
            os.chdir('n' * 100)
        os.close(os.open('f', os.O_CREAT))
        found = [said(lambda: len(os.getcwd()) - len(d)), os.path.exists('f')]
        for _ in range(60):
            os.chdir('..')
        found.append(os.path.samefile('.', d))
    finally:
        os.chdir(here)
    shutil.rmtree(d + '/' + 'n' * 100)
    return found, os.listdir(d)


def chains_of_links(d):
    os.close(os.open(d + '/0', os.O_CREAT))
    for i in range(45):
        os.symlink('%d' % i, '%s/%d' % (d, i + 1))
    return [said(lambda i=i: os.stat('%s/%d' % (d, i)).st_size) for i in (1, 39, 40, 41, 45)]


def moved_while_inside(d):
    os.makedirs(d + '/a/b/c')
    os.mkdir(d + '/x')
    here = os.getcwd()
    try:
        os.chdir(d + '/a/b/c')
        os.rename(d + '/a/b', d + '/x/b')
        found = [os.path.relpath(os.getcwd(), d), os.path.samefile('../..', d + '/x')]
        os.rmdir(d + '/x/b/c')
        found += [said(os.getcwd), said(os.listdir, '.'), said(os.mkdir, 'y'),
                  said(os.open, 'f', os.O_CREAT)]
    finally:
        os.chdir(here)
    return found


def unlinked_folders(d):
    os.mkdir(d + '/a')
    fd = os.open(d + '/a', os.O_RDONLY)
    os.rmdir(d + '/a')
    return [said(os.listdir, fd), said(lambda: os.open('x', os.O_CREAT, dir_fd=fd)),
            os.fstat(fd).st_nlink, said(os.fsync, fd), said(os.fchmod, fd, 0o700)]


# --- what else there is

def programs_run(d):
    shutil.copy('/bin/true', d + '/true')
    shutil.copy('/usr/bin/id', d + '/id')
    os.chmod(d + '/id', 0o4755)
    os.chmod(d, 0o755)
    found = [subprocess.call([d + '/true'])]
    found.append(subprocess.run(['setpriv', '--reuid=1001', '--regid=1001', '--clear-groups',
                                 d + '/id', '-u'], stdout=subprocess.PIPE).stdout)
    sleeping = subprocess.Popen([shutil.copy('/bin/sleep', d + '/sleep'), '10'])
    found += [said(os.open, d + '/sleep', os.O_WRONLY), said(os.truncate, d + '/sleep', 0)]
    os.unlink(d + '/sleep')
    sleeping.kill()
    return found + [sleeping.wait()]


def devices_and_sockets(d):
    os.mknod(d + '/zero', stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.mknod(d + '/none', stat.S_IFCHR | 0o666, os.makedev(300, 300))
    with open(d + '/zero', 'rb') as f:
        found = [f.read(5), said(os.open, d + '/none', os.O_RDONLY)]
    os.mkfifo(d + '/fifo')
    found.append(said(os.open, d + '/fifo', os.O_WRONLY | os.O_NONBLOCK))
    child = os.fork()
    if not child:
        with open(d + '/fifo', 'wb') as f:
            f.write(b'through')
        os._exit(0)
    with open(d + '/fifo', 'rb') as f:
        found.append(f.read())
    os.waitpid(child, 0)
    here = os.getcwd()
    try:
        os.chdir(d)
        with socket.socket(socket.AF_UNIX) as a, socket.socket(socket.AF_UNIX) as b:
            a.bind('socket')
            found += [said(a.bind, 'again'), oct(os.stat('socket').st_mode)]
            a.listen()
            b.connect('socket')
            b.send(b'hello')
            found.append(a.accept()[0].recv(9))
    finally:
        os.chdir(here)
    return found


def events(d):
    watch = LIBC.inotify_init1(os.O_NONBLOCK)
    os.close(os.open(d + '/f', os.O_CREAT))
    for path in (d, d + '/f'):
        call('inotify_add_watch', watch, path, 0xfff)
    with open(d + '/f', 'r+b') as f:
        f.write(b'content')
    with open(d + '/f', 'rb') as f:
        f.read()
    os.chmod(d + '/f', 0o600)
    os.truncate(d + '/f', 2)
    os.mkdir(d + '/sub')
    os.rename(d + '/f', d + '/g')
    os.link(d + '/g', d + '/h')
    os.unlink(d + '/g')
    os.unlink(d + '/h')
    raw, found = os.read(watch, 65536), []
    os.close(watch)
    while raw:
        which, mask, _, length = struct.unpack('iIII', raw[:16])
        found.append((which, hex(mask), raw[16:16 + length].rstrip(b'\0')))
        raw = raw[16 + length:]
    return found


def handles(d):
    """Of files that are in use, as NFS servers take them."""
    fd = opened(d + '/f', content=b'by handle')
    handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
    mount = ctypes.c_int()
    call('name_to_handle_at', AT_FDCWD, d + '/f', handle, ctypes.byref(mount), 0)
    folder = os.open(d, os.O_RDONLY)
    again = LIBC.open_by_handle_at(folder, handle, os.O_RDONLY)
    found = [os.pread(again, 20, 0) if again >= 0 else errno_of(again)]
    return found


def births(d):
    for name in ('/before', '/f', '/after'):
        os.close(os.open(d + name, os.O_CREAT))
    os.utime(d + '/f', ns=(5, 5))
    out = ctypes.create_string_buffer(256)
    call('statx', AT_FDCWD, d + '/f', 0, 0xfff, out)
    mask, = struct.unpack_from('I', out, 0)
    seconds, ns = struct.unpack_from('qI', out, 0x50)
    return bool(mask & 0x800), os.stat(d + '/before').st_mtime_ns <= \
        seconds * 10 ** 9 + ns <= os.stat(d + '/after').st_mtime_ns


def values_of_attributes(d):
    os.close(os.open(d + '/f', os.O_CREAT))
    found = []
    for size in (0, 1, 100, 2000, 3000):
        found.append(said(os.setxattr, d + '/f', 'user.v', b'v' * size))
        found.append(said(lambda: len(os.getxattr(d + '/f', 'user.v'))))
    small = ctypes.create_string_buffer(10)
    found.append(errno_of(LIBC.getxattr(os.fsencode(d + '/f'), b'user.v', small, 10)))
    found.append(errno_of(LIBC.listxattr(os.fsencode(d + '/f'), small, 3)))
    found.append(errno_of(LIBC.getxattr(os.fsencode(d + '/f'), b'user.v', None, 0)))
    found.append(errno_of(LIBC.listxattr(os.fsencode(d + '/f'), None, 0)))
    return found


FLAGS_GET, FLAGS_SET = 0x80086601, 0x40086602


def flags_of_files(d):
    def get(fd):
        return hex(struct.unpack('i', fcntl.ioctl(fd, FLAGS_GET, bytes(4)))[0])

    found, f = [], d + '/f'
    for flag in (0x10, 0x20, 0x80):  # immutable, append only, no atime
        fd = opened(f, content=b'content')
        found.append(said(get, fd))
        both = flag | int(get(fd), 16)
        found.append(said(lambda x=both: fcntl.ioctl(fd, FLAGS_SET, struct.pack('i', x))))
        found.append(said(get, fd))
        found += [said(os.open, f, os.O_WRONLY), said(os.truncate, f, 3), said(os.unlink, f),
                  said(os.chmod, f, 0o600), said(os.link, f, f + '2'), said(os.pwrite, fd, b'x', 0),
                  said(os.rename, f, f + '3'), said(os.setxattr, f, 'user.x', b'v')]
        for name in (f, f + '2', f + '3'):
            if os.path.exists(name):
                again = os.open(name, os.O_RDONLY)
                said(lambda: fcntl.ioctl(again, FLAGS_SET, struct.pack(
                    'i', int(get(again), 16) & ~0xb0)))
                os.close(again)
                found.append(os.stat(name).st_size)
                os.unlink(name)
        os.close(fd)
    folder = os.open(d, os.O_RDONLY)
    return found + [said(get, folder), said(lambda: fcntl.ioctl(folder, 0x1234)),
                    said(lambda: fcntl.ioctl(folder, 0x80041272, bytes(8)))]


def room_of_the_file_system(d):
    s = os.statvfs(d)
    return s.f_bsize, s.f_frsize, s.f_blocks, s.f_files, s.f_namemax


def users_of_groups(d):
    """A folder of a group that the caller has among his others."""
    os.chmod(d, 0o2775)
    os.chown(d, 0, 1005)

    def make():
        os.setgroups([1005])
        os.setegid(1001)
        os.seteuid(1001)
        os.umask(0o002)
        os.mkdir(d + '/sub')
        os.close(os.open(d + '/sub/f', os.O_CREAT, 0o2777))
        os.chown(d + '/sub/f', -1, 1005)
        os.chown(d + '/sub/f', -1, 1001)

    return [in_child(make)] + [(oct(s.st_mode), s.st_uid, s.st_gid)
                               for s in (os.stat(d + '/sub'), os.stat(d + '/sub/f'))]


def result_of(scene, folder):
    """In a process of its own, as it would be of a program; as text."""
    os.mkdir(folder)
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        try:
            text = repr(scene(folder))
        except Exception as error:  # it fails in both places, or the comparison does
            text = 'raised %r' % error
        with open(writable, 'w') as f:
            f.write(text)
        os._exit(0)
    os.close(writable)
    with open(readable) as f:
        text = f.read()
    os.waitpid(child, 0)
    return text


SCENES = [
    locks_of_processes, locks_of_files, a_lock_goes_with_any_close, a_lock_is_waited_for,
    appends_of_two_processes, sizes_are_seen_at_once, limits_of_sizes, sparse_and_far,
    what_makes_no_sense, memory_past_the_end, memory_and_calls_agree, mapped_writes_move_the_time,
    direct_beside_buffered, many_names, places_in_a_folder, deep, chains_of_links,
    moved_while_inside, unlinked_folders, programs_run, devices_and_sockets, events, handles, births,
    values_of_attributes, flags_of_files, room_of_the_file_system, users_of_groups,
]
