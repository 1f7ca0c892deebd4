# SPDX-License-Identifier: MIT
"""A matrix of system calls on files: each call on each kind of object in each kind of folder by
each kind of user. What came of it, and what the folder is afterwards, is one line of text, so that
two file systems are compared by comparing lines.

Clocks: all folders of a batch are made first, then time passes, then the calls are made; so each
time of a file that a call moves is seen to move. A line says which did, not when.

By itself:  python3 tests/cli/posix_matrix.py FOLDER [SEED COUNT]   prints the lines.
"""
import ctypes
import errno
import mmap
import os
import random
import shutil
import stat
import struct
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
OMIT, NOW = (1 << 30) - 2, (1 << 30) - 1
OWNER, MEMBER, STRANGER = 1001, 1002, 1003
USERS = {'root': (0, 0, [0]), 'owner': (OWNER, OWNER, [OWNER]),
         'member': (MEMBER, MEMBER, [MEMBER, OWNER]), 'stranger': (STRANGER, STRANGER, [STRANGER])}
PAST = 10 ** 18
BATCH = 400
CAPABILITY = struct.pack('<IIIII', 0x02000001, 1 << 10, 0, 0, 0)


def acl(*entries):
    return struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *e) for e in entries)


NOBODY = 0xffffffff
ACL_FILE = acl((1, 6, NOBODY), (2, 7, MEMBER), (4, 4, NOBODY), (16, 6, NOBODY), (32, 0, NOBODY))
ACL_FOLDER = acl((1, 7, NOBODY), (2, 7, MEMBER), (4, 5, NOBODY), (8, 5, 1004), (16, 7, NOBODY),
                 (32, 1, NOBODY))


def call(name, *words):
    converted = [os.fsencode(w) if isinstance(w, str) else ctypes.c_long(w) if isinstance(w, int)
                 else w for w in words]
    rc = getattr(LIBC, name)(*converted)
    if rc < 0:
        raise OSError(ctypes.get_errno(), name)
    return rc


def utimens(path, access, modified, follow=True):
    pair = (ctypes.c_long * 4)(PAST // 10 ** 9, access, PAST // 10 ** 9, modified)
    call('utimensat', AT_FDCWD, path, pair, 0 if follow else 0x100)


# --- where, and on what

def in_plain(d):
    os.chmod(d, 0o775)


def in_sticky(d):
    os.chown(d, 0, 0)
    os.chmod(d, 0o1777)


def in_read_only(d):
    os.chmod(d, 0o555)


def in_no_search(d):
    os.chmod(d, 0o664)


def in_setgid(d):
    os.chmod(d, 0o2777)


def in_acl(d):
    os.chmod(d, 0o775)
    os.setxattr(d, 'system.posix_acl_default', ACL_FOLDER)
    os.setxattr(d, 'system.posix_acl_access', ACL_FOLDER)


FOLDERS = [in_plain, in_plain, in_sticky, in_read_only, in_no_search, in_setgid, in_acl]


def make_file(path, mode=0o644, content=b'content'):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(fd, content)
    os.close(fd)
    os.chown(path, OWNER, OWNER)
    os.chmod(path, mode)
    return path


def make_folder(path, mode=0o755):
    os.mkdir(path)
    os.chown(path, OWNER, OWNER)
    os.chmod(path, mode)
    return path


def make_node(path, kind):
    os.mknod(path, kind | 0o644, os.makedev(1, 3))
    os.chown(path, OWNER, OWNER)
    return path


def make_link(path, target):
    os.symlink(target, path)
    os.chown(path, OWNER, OWNER, follow_symlinks=False)
    return path


def with_acl(path):
    os.setxattr(make_file(path), 'system.posix_acl_access', ACL_FILE)
    return path


def with_capability(path):
    os.setxattr(make_file(path, 0o777), 'security.capability', CAPABILITY)
    return path


def full_folder(path):
    make_file(make_folder(path) + '/inner')
    return path


def theirs(path, of):
    make_file(path) if of == 'file' else make_folder(path)
    os.chown(path, STRANGER, STRANGER)
    return path


def two_names(path):
    os.link(make_file(path), path + '.other')
    return path


def script(path):
    return make_file(path, 0o755, b'#!/bin/sh\nexit 3\n')


def after(make, suffix):
    return lambda path: make(path) + suffix


def link_to(make):
    def both(path):
        make(path + '.target')
        return make_link(path, os.path.basename(path) + '.target')
    return both


OBJECTS = {
    'none': lambda path: path,
    'file': make_file,
    'file_of_other': lambda path: theirs(path, 'file'),
    'file_suid': lambda path: make_file(path, 0o6755),
    'file_sgid_noexec': lambda path: make_file(path, 0o6644),
    'file_writable': lambda path: make_file(path, 0o6777),
    'file_0': lambda path: make_file(path, 0),
    'file_ro': lambda path: make_file(path, 0o444),
    'file_wo': lambda path: make_file(path, 0o222),
    'file_acl': with_acl,
    'file_capable': with_capability,
    'file_empty': lambda path: make_file(path, 0o666, b''),
    'two_names': two_names,
    'script': script,
    'dir': make_folder,
    'dir_of_other': lambda path: theirs(path, 'dir'),
    'dir_full': full_folder,
    'dir_open': lambda path: make_folder(path, 0o2777),
    'fifo': lambda path: make_node(path, stat.S_IFIFO),
    'socket': lambda path: make_node(path, stat.S_IFSOCK),
    'char': lambda path: make_node(path, stat.S_IFCHR),
    'block': lambda path: make_node(path, stat.S_IFBLK),
    'link_file': link_to(lambda path: make_file(path, 0o4755)),
    'link_dir': link_to(make_folder),
    'link_none': lambda path: make_link(path, 'nowhere'),
    'link_loop': lambda path: make_link(path, os.path.basename(path)),
    'link_long': lambda path: make_link(path, 'x/' * 2000),
    'file_slash': after(make_file, '/'),
    'dir_slash': after(make_folder, '/'),
    'dir_dot': after(make_folder, '/.'),
    'dir_dots': after(make_folder, '/..'),
    'link_dir_slash': after(link_to(make_folder), '/'),
    'below_file': after(make_file, '/x'),
    'below_none': lambda path: path + '/x',
    'long_name': lambda path: make_file(os.path.join(os.path.dirname(path), 'n' * 255)),
    'too_long_name': lambda path: os.path.join(os.path.dirname(path), 'n' * 256),
    'too_long_path': lambda path: path + '/x' * 2048,
    'no_name': lambda path: '',
}


# --- what is done

def do_open(flags, mode=0o6666, write=False):
    def operation(path):
        fd = os.open(path, flags | os.O_NONBLOCK, mode)
        try:
            said = []
            for step in (lambda: os.read(fd, 4), lambda: os.write(fd, b'new')) if write else ():
                try:
                    said.append(step())
                except OSError as error:
                    said.append(errno.errorcode[error.errno])
            return said, shown(os.fstat(fd), [])
        finally:
            os.close(fd)
    return operation


def opens():
    extra = {'': 0, 'creat': os.O_CREAT, 'excl': os.O_CREAT | os.O_EXCL, 'trunc': os.O_TRUNC,
             'creat_trunc': os.O_CREAT | os.O_TRUNC, 'append': os.O_APPEND,
             'nofollow': os.O_NOFOLLOW, 'directory': os.O_DIRECTORY, 'path': os.O_PATH,
             'path_nofollow': os.O_PATH | os.O_NOFOLLOW, 'noatime': os.O_NOATIME,
             'creat_directory': os.O_CREAT | os.O_DIRECTORY, 'sync': os.O_SYNC | os.O_CREAT,
             'excl_nofollow': os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 'tmpfile': os.O_TMPFILE,
             'tmpfile_excl': os.O_TMPFILE | os.O_EXCL}
    for access in ('RDONLY', 'WRONLY', 'RDWR'):
        for name, flag in extra.items():
            flags = getattr(os, 'O_' + access) | flag
            yield 'open %s %s' % (access, name), do_open(flags, write=True)


def beside(path, name):
    return os.path.join(os.path.dirname(path.rstrip('/')) or '.', name)


def renames(make, flags, forth):
    def operation(path):
        other = beside(path, 'other')
        with_root(lambda: OBJECTS[make](other))
        old, new = (path, other) if forth else (other, path)
        call('renameat2', AT_FDCWD, old, AT_FDCWD, new, flags)
    return operation


def link_tmpfile(path):
    fd = os.open(os.path.dirname(path), os.O_TMPFILE | os.O_RDWR, 0o6640)
    try:
        os.write(fd, b'tmp')
        before = shown(os.fstat(fd), [])
        os.link('/proc/self/fd/%d' % fd, path, follow_symlinks=True)
        return before, shown(os.fstat(fd), [])
    finally:
        os.close(fd)


def keep_open(change):
    """What is open goes on, whatever becomes of its name."""
    def operation(path):
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        try:
            change(path)
            if stat.S_ISREG(os.fstat(fd).st_mode):
                os.pwrite(fd, b'more', 5)
            return shown(os.fstat(fd), []), os.pread(fd, 20, 0)
        finally:
            os.close(fd)
    return operation


def execute(path):
    child = os.fork()
    if not child:
        try:
            os.execv(path, ['program'])
        except OSError as error:
            os._exit(error.errno)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def busy(path):
    """Executed while open for writing."""
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        return execute(path)
    finally:
        os.close(fd)


def read_all(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(fd, 100) if stat.S_ISREG(os.fstat(fd).st_mode) else 'not read'
    finally:
        os.close(fd)


def fchmod_write(path):
    """Rights are looked at when a file is opened."""
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        os.fchmod(fd, 0o6000)
        return os.write(fd, b'y') if stat.S_ISREG(os.fstat(fd).st_mode) else 'not written'
    finally:
        os.close(fd)


def xattr_list(path):
    return sorted(os.listxattr(path, follow_symlinks=False))


def trusted(path):
    os.setxattr(path, 'trusted.t', b'1', follow_symlinks=False)
    return xattr_list(path)


def trusted_unseen(path):
    with_root(lambda: os.setxattr(path, 'trusted.t', b'1'))
    return xattr_list(path), os.getxattr(path, 'trusted.t')


def many_xattrs(path):
    for i in range(20):
        os.setxattr(path, 'user.%d' % i, b'v' * 10 * i)
    os.removexattr(path, 'user.3')
    return xattr_list(path), os.getxattr(path, 'user.19')


def with_file(flags, change):
    """What a change by a descriptor does; it says what it wants said."""
    def operation(path):
        fd = os.open(path, flags | os.O_NONBLOCK)
        try:
            return change(fd), shown(os.fstat(fd), [])
        finally:
            os.close(fd)
    return operation


def mapped(fd):
    s = os.fstat(fd)
    if not stat.S_ISREG(s.st_mode) or not s.st_size:
        return 'not mapped'
    with mmap.mmap(fd, 0) as m:
        m[0:2] = b'MM'
        m.flush()
    return os.pread(fd, 10, 0)


def by_descriptor():
    for mode in (0, 1, 3, 2, 16, 17):
        for offset, length in ((0, 4), (2, 9000), (0, 0)):
            yield 'fallocate %d %d+%d' % (mode, offset, length), with_file(
                os.O_RDWR, lambda fd, m=mode, o=offset, n=length: call('fallocate', fd, m, o, n))
    for size in (0, 7, 100):
        yield 'ftruncate %d' % size, with_file(os.O_RDWR, lambda fd, n=size: os.ftruncate(fd, n))
    yield 'write nothing', with_file(os.O_WRONLY, lambda fd: os.write(fd, b''))
    yield 'write at', with_file(os.O_WRONLY, lambda fd: os.pwrite(fd, b'x', 6000))
    yield 'mapped', with_file(os.O_RDWR, mapped)
    yield 'fchmod', with_file(os.O_WRONLY, lambda fd: os.fchmod(fd, 0o6711))
    yield 'fchown', with_file(os.O_WRONLY, lambda fd: os.fchown(fd, -1, OWNER))
    yield 'futimens', with_file(os.O_WRONLY, lambda fd: os.utime(fd, ns=(5, 7)))
    yield 'fsync', with_file(os.O_WRONLY, os.fsync)
    yield 'seek data', with_file(os.O_WRONLY, lambda fd: os.lseek(fd, 0, os.SEEK_DATA))
    yield 'seek hole', with_file(os.O_WRONLY, lambda fd: os.lseek(fd, 0, os.SEEK_HOLE))


def copied(path):
    other = beside(path, 'other')
    with_root(lambda: make_file(other, 0o666, b'0123456789' * 1000))
    a = os.open(other, os.O_RDONLY)
    try:
        b = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        try:
            return os.copy_file_range(a, b, 5000, 100, 50)
        finally:
            os.close(b)
    finally:
        os.close(a)


def operations():
    yield from opens()
    yield from by_descriptor()
    for mode in (0o755, 0o7777, 0):
        yield 'mkdir %o' % mode, lambda path, mode=mode: os.mkdir(path, mode)
    for name in ('IFREG', 'IFIFO', 'IFSOCK', 'IFCHR', 'IFBLK', 'IFDIR'):
        kind = getattr(stat, 'S_' + name)
        yield 'mknod ' + name, lambda path, kind=kind: os.mknod(path, kind | 0o6666,
                                                                os.makedev(1, 3))
    yield 'unlink', os.unlink
    yield 'rmdir', os.rmdir
    yield 'symlink', lambda path: os.symlink('target', path)
    yield 'symlink to nothing', lambda path: call('symlink', '', path)
    yield 'symlink long', lambda path: os.symlink('t' * 4095, path)
    yield 'symlink too long', lambda path: os.symlink('t' * 4096, path)
    yield 'link new', lambda path: os.link(path, beside(path, 'other'), follow_symlinks=False)
    yield 'link follow', lambda path: os.link(path, beside(path, 'other'))
    yield 'link over', lambda path: os.link(path, path, follow_symlinks=False)
    yield 'link tmpfile', link_tmpfile
    for make in ('none', 'file', 'dir', 'dir_full', 'fifo', 'link_none', 'dir_of_other',
                 'file_of_other', 'long_name'):
        for flags in (0, 1, 2):
            yield 'rename to %s %d' % (make, flags), renames(make, flags, True)
            yield 'rename from %s %d' % (make, flags), renames(make, flags, False)
    yield 'rename to itself', lambda path: os.rename(path, path)
    yield 'rename into itself', lambda path: os.rename(path, path + '/below')
    yield 'rename to its parent', lambda path: os.rename(path, os.path.dirname(path))
    yield 'rename whiteout', lambda path: call('renameat2', AT_FDCWD, path, AT_FDCWD,
                                               beside(path, 'other'), 4)
    yield 'rename bad flags', lambda path: call('renameat2', AT_FDCWD, path, AT_FDCWD,
                                                beside(path, 'other'), 3)
    yield 'rename to its other name', lambda path: os.rename(path, path + '.other')
    for size in (0, 3, 7, 5000, 1 << 33, -1):
        yield 'truncate %d' % size, lambda path, size=size: os.truncate(path, size)
    yield 'truncate too far', lambda path: os.truncate(path, (1 << 63) - 1)
    for mode in (0, 0o644, 0o777, 0o4755, 0o2755, 0o1755, 0o6777):
        yield 'chmod %o' % mode, lambda path, mode=mode: os.chmod(path, mode)
    for uid, gid in ((-1, -1), (OWNER, -1), (-1, OWNER), (MEMBER, -1), (-1, MEMBER), (0, 0),
                     (OWNER, OWNER)):
        for follow in (True, False):
            yield 'chown %d %d %s' % (uid, gid, follow), \
                lambda path, u=uid, g=gid, f=follow: os.chown(path, u, g, follow_symlinks=f)
    for a in (NOW, OMIT, 5):
        for m in (NOW, OMIT, 7):
            yield 'utimens %d %d' % (a, m), lambda path, a=a, m=m: utimens(path, a, m)
    yield 'utimens link', lambda path: utimens(path, 5, 7, False)
    yield 'utimens bad', lambda path: utimens(path, 10 ** 9, 7)
    yield 'utime now', lambda path: call('utimensat', AT_FDCWD, path, None, 0)
    yield 'old times', lambda path: os.utime(path, ns=(-10 ** 18, -5))
    yield 'unlinked', keep_open(os.unlink)
    yield 'moved', keep_open(lambda path: os.rename(path, beside(path, 'other')))
    yield 'replaced', keep_open(
        lambda path: os.rename(make_file(beside(path, 'other')), path))
    yield 'execute', execute
    yield 'execute while written', busy
    yield 'read', read_all
    yield 'fchmod and write', fchmod_write
    yield 'readlink', os.readlink
    yield 'list', lambda path: sorted(os.listdir(path))
    yield 'scan', lambda path: sorted((e.name, e.is_dir()) for e in os.scandir(path))
    yield 'chdir', lambda path: chdir_and_back(path)
    for mode in range(8):
        yield 'access %d' % mode, lambda path, mode=mode: os.access(path, mode,
                                                                    effective_ids=True)
    yield 'stat', lambda path: shown(os.stat(path), [])
    yield 'lstat', lambda path: shown(os.lstat(path), [])
    yield 'xattr', lambda path: os.setxattr(path, 'user.x', b'value')
    yield 'xattr of link', lambda path: os.setxattr(path, 'user.x', b'v', follow_symlinks=False)
    yield 'xattr create', lambda path: os.setxattr(path, 'user.x', b'v', os.XATTR_CREATE)
    yield 'xattr replace', lambda path: os.setxattr(path, 'user.x', b'v', os.XATTR_REPLACE)
    yield 'xattr get', lambda path: os.getxattr(path, 'user.x')
    yield 'xattr remove', lambda path: os.removexattr(path, 'user.x')
    yield 'xattr unknown', lambda path: os.setxattr(path, 'other.x', b'v')
    yield 'xattr no name', lambda path: os.setxattr(path, '', b'v')
    yield 'xattr long name', lambda path: os.setxattr(path, 'user.' + 'x' * 251, b'v')
    yield 'xattr large', lambda path: os.setxattr(path, 'user.x', b'v' * 65537)
    yield 'xattr many', many_xattrs
    yield 'trusted', trusted
    yield 'trusted unseen', trusted_unseen
    yield 'capability', lambda path: os.setxattr(path, 'security.capability', CAPABILITY)
    yield 'capability get', lambda path: os.getxattr(path, 'security.capability')
    yield 'security', lambda path: os.setxattr(path, 'security.x', b'v')
    yield 'acl set', lambda path: os.setxattr(path, 'system.posix_acl_access', ACL_FILE)
    yield 'acl default', lambda path: os.setxattr(path, 'system.posix_acl_default', ACL_FOLDER)
    yield 'acl bad', lambda path: os.setxattr(path, 'system.posix_acl_access', b'nonsense')
    yield 'acl get', lambda path: os.getxattr(path, 'system.posix_acl_access')
    yield 'acl remove', lambda path: os.removexattr(path, 'system.posix_acl_access')
    yield 'copy', copied


def chdir_and_back(path):
    here = os.getcwd()
    os.chdir(path)
    try:
        os.close(os.open('made', os.O_CREAT | os.O_WRONLY, 0o666))
        return sorted(os.listdir('.'))
    finally:
        os.chdir(here)


# --- running it

def become(user):
    os.seteuid(0)
    os.setegid(0)
    os.setgroups(user[2])
    os.setegid(user[1])
    os.seteuid(user[0])


def with_root(function):
    """Within a call by somebody: what has to be there beforehand."""
    uid, gid, groups = os.geteuid(), os.getegid(), os.getgroups()
    become(USERS['root'])
    try:
        return function()
    finally:
        become((uid, gid, groups))


def shown(s, before):
    what = [oct(s.st_mode), s.st_nlink, s.st_uid, s.st_gid]
    if stat.S_ISREG(s.st_mode) or stat.S_ISLNK(s.st_mode):
        what.append(s.st_size)
    elif not stat.S_ISDIR(s.st_mode):
        what.append(s.st_rdev)
    now = [s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns]
    if before:
        what.append(''.join(letter for letter, a, b in zip('amc', before, now) if a != b))
    return what


def times_of(top):
    found = {}
    for name in names_below(top):
        s = os.lstat(os.path.join(top, name))
        found[name] = [s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns]
    return found


def age(top):
    for name in reversed(list(names_below(top))):
        os.utime(os.path.join(top, name), ns=(PAST, PAST), follow_symlinks=False)


def look(top, before):
    """All that is in the folder now; its own reading moves access times, so they come first."""
    lines = []
    paths = {name: os.path.normpath(os.path.join(top, name)) for name in names_below(top)}
    stats = {name: os.lstat(path) for name, path in paths.items()}
    for name, path in sorted(paths.items()):
        s = stats[name]
        what = [name if len(name) < 50 else name[:20] + '...'] + shown(s, before.get(name, []))
        if stat.S_ISLNK(s.st_mode):
            what.append(os.readlink(path)[:20])
        elif stat.S_ISREG(s.st_mode) and s.st_size < 1000000:
            with open(path, 'rb') as f:
                what.append(f.read()[:20])
        for key in sorted(os.listxattr(path, follow_symlinks=False)):
            what.append((key, os.getxattr(path, key, follow_symlinks=False)[:60]))
        lines.append(what)
    return lines


def names_below(top, folder='.'):
    """Without following links, which would move their times."""
    yield folder
    for entry in os.scandir(os.path.join(top, folder)):
        name = os.path.normpath(os.path.join(folder, entry.name))
        if entry.is_dir(follow_symlinks=False):
            yield from names_below(top, name)
        else:
            yield name


def all_cases():
    for name, operation in operations():
        for made in OBJECTS:
            for user in USERS:
                for folder in sorted(set(FOLDERS), key=lambda f: f.__name__):
                    yield name, operation, made, user, folder


def cases(seed, count):
    found = [case for case in all_cases() if not is_the_kernels(case)]
    r = random.Random(seed)
    r.shuffle(found)
    return found[:count] if count else found


def prepare(top, number, case):
    _, _, made, _, folder = case
    d = os.path.join(top, '%d' % number)
    make_folder(d)
    path = OBJECTS[made](os.path.join(d, 'o'))
    folder(d)
    age(d)
    return d, path, times_of(d)


def attempt(case, folder, path, _):
    _, operation, _, user, _ = case
    here = os.getcwd()
    os.chdir(folder)
    become(USERS[user])
    try:
        return operation(path)
    except OSError as error:
        return errno.errorcode.get(error.errno, error.errno)
    finally:
        become(USERS['root'])
        os.chdir(here)


def run(top, some):
    """The lines of these cases, in folders of their own below `top`."""
    os.umask(0o022)
    for start in range(0, len(some), BATCH):
        batch = some[start:start + BATCH]
        made = [prepare(top, start + i, case) for i, case in enumerate(batch)]
        time.sleep(0.02)
        results = [attempt(case, *there) for case, there in zip(batch, made)]
        for case, result, (d, _, before) in zip(batch, results, made):
            name, _, object_, user, folder = case
            yield '%s of %s %s by %s: %s; then %s' % (
                name, object_, folder.__name__, user, result, look(d, before))
            shutil.rmtree(d)


def is_the_kernels(case):
    """Where the kernel asks no FUSE server, or not so that he could tell: no server can do better.
    Names of pipes have no times that move. A read at the end of a file is not sent. A chown to
    nobody comes as a write's clearing of set-user-id does. Who executes a file that somebody
    writes to has opened it first. And a truncation too far may cost a file its capabilities."""
    name, _, made, _, _ = case
    return (made == 'fifo' and name.startswith('open') or name == 'execute while written' or
            name.startswith('chown -1 -1') or
            name == 'truncate too far' and made == 'file_capable' or
            made != 'fifo' and name.startswith('open RDWR') and
            ('trunc' in name or made == 'file_empty'))


if __name__ == '__main__':
    seed_, count_ = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (1, 0)
    for line in run(os.path.abspath(sys.argv[1]), cases(seed_, count_)):
        print(line)
