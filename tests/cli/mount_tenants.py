# SPDX-License-Identifier: MIT
"""Tenants of a mount: whose a call is, by cgroup, user and path; that a noisy one waits and a quiet
one does not; and what is said of them."""
import contextlib
import errno
import json
import mmap
import os
import signal
import tempfile
import time

import program
from mount_rig import ends, need_mounts, rig, sh
from program import Skip, contains, equal, refused, sluice

MIB = 1 << 20
KIB = 1 << 10
#: a cache that writes nothing before it is asked to
LAZY = 'memory=64M,dirty_writeback_centisecs=0,dirty_ratio=90,dirty_background_ratio=80'


def write(path, length, offset=0):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.pwrite(fd, b'x' * length, offset)
    finally:
        os.close(fd)


def as_child(call, *words):
    """In a process of its own; returns its number."""
    child = os.fork()
    if not child:
        status = 1
        try:
            call(*words)
            status = 0
        finally:
            os._exit(status)
    equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
    return child


def as_user(uid, call, *words):
    def change():
        os.setuid(uid)
        call(*words)
    return as_child(change)


def stat(r):
    return json.loads(sluice('stat', '--json', r.mount).out)


def dirtied(r):
    """KiB that each tenant has made dirty."""
    return {t['name']: t['dirtied_bytes'] // KIB for t in stat(r)['tenants']}


def change(r, *words):
    done = sluice('tenants', *words, r.mount)
    equal((done.status, done.out, done.err), (0, '', ''))


@contextlib.contextmanager
def cgroup():
    """A cgroup of version 2: its folder, and its name as rules have it."""
    with open('/proc/mounts') as f:
        roots = [line.split()[1] for line in f if line.split()[2] == 'cgroup2']
    with open('/proc/self/cgroup') as f:
        own = [line[3:].strip() for line in f if line.startswith('0::')]
    if not roots or not own:
        raise Skip('no cgroups of version 2')
    name = own[0].rstrip('/') + '/sluice-test-%d' % os.getpid()
    folder = roots[0] + name
    try:
        os.mkdir(folder)
    except OSError as error:
        raise Skip('no cgroup can be made: ' + error.strerror)
    try:
        yield folder, name
    finally:
        for _ in range(100):
            try:
                os.rmdir(folder)
                return
            except OSError:  # who was in it is just ending
                time.sleep(0.05)
        raise AssertionError(folder + ' stays')


def enter(folder):
    with open(os.path.join(folder, 'cgroup.procs'), 'w') as f:
        f.write(str(os.getpid()))


# --- whose a call is

def test_a_path_says_whose_it_is():
    with rig() as r:
        os.makedirs(os.path.join(r.source, 'logs/old'))
        os.mkdir(os.path.join(r.source, 'logs2'))
        r.serve(LAZY + ',tenant.old.path=/logs/old,tenant.logs.path=/logs')
        write(os.path.join(r.mount, 'logs/a'), 8 * KIB)
        write(os.path.join(r.mount, 'logs/old/a'), 16 * KIB)
        write(os.path.join(r.mount, 'logs2/a'), 32 * KIB)
        write(os.path.join(r.mount, 'logs3'), 64 * KIB)
        equal(dirtied(r), {'old': 16, 'logs': 8})
        # an open file stays whose it was, a new open of it is by its new name
        fd = os.open(os.path.join(r.mount, 'logs/a'), os.O_WRONLY)
        os.pwrite(fd, b'x' * 4096, 100 * KIB)
        os.rename(os.path.join(r.mount, 'logs/a'), os.path.join(r.mount, 'logs/old/b'))
        os.pwrite(fd, b'x' * 4096, 200 * KIB)
        os.close(fd)
        equal(dirtied(r), {'old': 16, 'logs': 16})
        write(os.path.join(r.mount, 'logs/old/b'), 4 * KIB, 300 * KIB)
        equal(dirtied(r), {'old': 20, 'logs': 16})
        # one of several names goes by that under which it was found first
        os.link(os.path.join(r.mount, 'logs3'), os.path.join(r.mount, 'logs/c'))
        write(os.path.join(r.mount, 'logs3'), 4 * KIB, 300 * KIB)
        equal(dirtied(r), {'old': 20, 'logs': 16})


def test_a_user_says_whose_it_is():
    with rig() as r:
        os.chmod(r.source, 0o777)
        os.chmod(r.folder, 0o755)
        r.serve(LAZY + ',tenant.one.uid=12345,tenant.nobody.uid=nobody')
        as_user(12345, write, os.path.join(r.mount, 'a'), 8 * KIB)
        as_user(65534, write, os.path.join(r.mount, 'b'), 16 * KIB)
        write(os.path.join(r.mount, 'c'), 32 * KIB)
        equal(dirtied(r), {'one': 8, 'nobody': 16})
        # each in the other's file
        for name in 'ab':
            os.chmod(os.path.join(r.mount, name), 0o666)
        as_user(12345, write, os.path.join(r.mount, 'b'), 4 * KIB, 64 * KIB)
        as_user(65534, write, os.path.join(r.mount, 'a'), 4 * KIB, 64 * KIB)
        equal(dirtied(r), {'one': 12, 'nobody': 20})


def test_a_cgroup_says_whose_it_is():
    with rig() as r, cgroup() as (folder, name):
        r.serve(LAZY + ',tenant.batch.cgroup=%s,tenant.other.cgroup=%sx' % (name, name))

        def moves():
            write(os.path.join(r.mount, 'before'), 4 * KIB)
            enter(folder)
            time.sleep(0.05)  # what was found out is believed for 20 ms
            write(os.path.join(r.mount, 'after'), 8 * KIB)
        as_child(moves)
        equal(dirtied(r), {'batch': 8, 'other': 0})


def test_a_number_that_is_used_again():
    with rig() as r, cgroup() as (folder, name):
        r.serve(LAZY + ',tenant.batch.cgroup=' + name)

        def batch():
            enter(folder)
            write(os.path.join(r.mount, 'a'), 8 * KIB)

        def other():
            write(os.path.join(r.mount, 'b'), 16 * KIB)
        number = as_child(batch)
        time.sleep(0.05)
        for _ in range(100):
            try:
                with open('/proc/sys/kernel/ns_last_pid', 'w') as f:
                    f.write(str(number - 1))
            except OSError:
                raise Skip('the next process number cannot be chosen')
            if as_child(other) == number:
                break
        else:
            raise Skip('others were faster to take the number')
        equal(dirtied(r)['batch'], 8)


def test_the_first_rule_counts():
    with rig() as r:
        for name in 'ab':
            os.mkdir(os.path.join(r.source, name))
        r.serve(LAZY + ',tenant.a.path=/a,tenant.root.uid=0,tenant.b.path=/b')
        write(os.path.join(r.mount, 'a/f'), 8 * KIB)
        write(os.path.join(r.mount, 'b/f'), 16 * KIB)
        equal(dirtied(r), {'a': 8, 'root': 16, 'b': 0})


def test_a_mapping_is_his_who_opened_the_file():
    with rig() as r:
        os.chmod(r.source, 0o777)
        os.chmod(r.folder, 0o755)
        r.serve(LAZY + ',tenant.one.uid=12345')

        def maps():
            fd = os.open(os.path.join(r.mount, 'a'), os.O_RDWR | os.O_CREAT)
            os.ftruncate(fd, 64 * KIB)
            with mmap.mmap(fd, 64 * KIB) as m:
                m[:12 * KIB] = b'y' * (12 * KIB)
                m.flush()
            os.close(fd)
        as_user(12345, maps)
        equal(dirtied(r), {'one': 12})


# --- what comes of it

def test_the_noisy_one_waits():
    with rig() as r:
        child = r.serve('memory=64M,tenant.noisy.dirty_bytes=4M,tenant.noisy.path=/noisy,'
                        'tenant.quiet.path=/quiet,tenant.quiet.floor=8M')
        for _ in range(50):
            for name in 'noisy', 'quiet':
                write(os.path.join(r.mount, name), 16 * MIB if name == 'noisy' else 4 * MIB)
            found = stat(r)
            if len(found['waits']) > 3:
                break
        noisy, quiet = found['tenants']
        equal((noisy['name'], noisy['dirty_thresh_bytes'], quiet['name'], quiet['floor_bytes']),
              ('noisy', 4 * MIB, 'quiet', 8 * MIB))
        assert noisy['throttle_sleeps'] > 0 and noisy['throttle_sleep_ns'] > 10 ** 6, noisy
        assert noisy['written_bytes'] > 0, noisy
        assert noisy['dirty_max_bytes'] <= 8 * MIB, noisy
        equal((quiet['throttle_sleeps'], quiet['throttle_sleep_ns']), (0, 0))
        equal({(w['tenant'], w['limits_of'], w['pid']) for w in found['waits']},
              {('noisy', 'tenant', os.getpid())})
        text = sluice('stat', r.mount).out
        contains(text, 'tenants:\n  name ')
        contains(text, '\n  noisy  ')
        contains(text, ' (python3) of tenant noisy, by the limits of the tenant, waited ')
        sh('umount', r.mount)
        ends(child)


def test_who_waits_has_his_own_pages_written():
    with rig() as r:
        os.chmod(r.source, 0o777)
        os.chmod(r.folder, 0o755)
        r.serve(LAZY + ',tenant.owner.uid=12345,tenant.other.uid=12346,tenant.other.dirty_bytes=2M')
        path = os.path.join(r.mount, 'f')
        as_user(12345, write, path, MIB)
        os.chmod(path, 0o666)

        def overwrites():
            for i in range(64):  # every other page: all of it lies between the owner's
                write(path, MIB, (i % 8 + 1) * MIB)
                write(path, 4 * KIB, (i % 32 * 8 + 4) * KIB)
        as_user(12346, overwrites)
        owner, other = stat(r)['tenants']
        # what the other has overwritten of the owner's stays the owner's: he made it dirty
        equal((owner['dirtied_bytes'], owner['written_bytes'], owner['debt_bytes']),
              (MIB, 0, MIB))
        assert other['written_bytes'] >= 16 * MIB and other['throttle_sleeps'] > 0, other
        assert other['debt_bytes'] <= 4 * MIB, other


def test_a_mount_without_tenants_says_nothing_of_them():
    with rig() as r:
        r.serve()
        equal(stat(r)['tenants'], [])
        equal('tenant' in sluice('stat', r.mount).out, False)


# --- changes

def test_a_tenant_that_comes_and_goes():
    with rig() as r:
        for name in 'ab':
            os.mkdir(os.path.join(r.source, name))
        child = r.serve(LAZY)
        equal(sluice('tenants', r.mount).out, 'no tenants\n')
        fd = os.open(os.path.join(r.mount, 'a/f'), os.O_WRONLY | os.O_CREAT)
        os.pwrite(fd, b'x' * 4096, 0)
        change(r, '-o', 'tenant.a.path=/a,tenant.a.dirty_bytes=8M', '-o', 'tenant.b.path=/b')
        os.pwrite(fd, b'x' * 8192, 64 * KIB)  # the file was open before there were rules
        equal(dirtied(r), {'a': 8, 'b': 0})
        contains(sluice('tenants', r.mount).out, '\n  a ')
        # other figures and another rule, of one that there is
        change(r, '-o', 'tenant.a.dirty_bytes=16M,tenant.a.path=/b/c')
        equal([t['dirty_thresh_bytes'] for t in stat(r)['tenants']][0], 16 * MIB)
        write(os.path.join(r.mount, 'b/c'), 4 * KIB)
        equal(dirtied(r), {'a': 8, 'b': 4})  # the first rule counts, and that is b's
        # it goes, and what it has dirty is written in its time
        change(r, '--close', 'a')
        os.pwrite(fd, b'x' * 8192, 128 * KIB)
        os.close(fd)
        equal(dirtied(r), {'b': 4})
        change(r, '-o', 'tenant.a.path=/a')
        write(os.path.join(r.mount, 'a/f'), 16 * KIB, MIB)
        equal(dirtied(r), {'a': 16, 'b': 4})
        change(r, '--close', 'a', '--close', 'b')
        equal(sluice('tenants', r.mount).out, 'no tenants\n')
        equal(sluice('sync', '-q', r.mount).status, 0)
        with open(os.path.join(r.source, 'a/f'), 'rb') as f:
            content = f.read()
        equal((len(content), content.count(b'x')), (MIB + 16 * KIB, 36 * KIB))
        sh('umount', r.mount)
        ends(child)


def test_tenants_go_while_they_are_throttled():
    with rig() as r:
        child = r.serve('memory=64M,dirty_ratio=40')
        write(os.path.join(r.mount, 'f'), 4096)
        writer = os.fork()
        if not writer:
            while True:
                write(os.path.join(r.mount, 'f'), 8 * MIB)
        try:
            for _ in range(20):
                change(r, '-o', 'tenant.t.dirty_bytes=1M,tenant.t.path=/')
                time.sleep(0.02)
                change(r, '--close', 't')
            equal(os.waitpid(writer, os.WNOHANG), (0, 0))
        finally:
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
        equal(stat(r)['tenants'], [])
        sh('umount', r.mount)
        ends(child)
        equal(os.path.getsize(os.path.join(r.source, 'f')), 8 * MIB)


def test_only_root_changes_them():
    with rig() as r:
        os.chmod(r.source, 0o777)
        os.chmod(r.folder, 0o755)
        r.serve(LAZY)

        def tries():
            try:
                os.setxattr(r.mount, 'user.sluice.tenants', b'tenant.a.uid=0')
            except PermissionError:
                return
            raise AssertionError('it was allowed to')
        as_user(12345, tries)
        for name, value, error in (
                ('user.sluice.tenants', b'tenant.a.floor=1M', errno.EINVAL),
                ('user.sluice.tenants', b'memory=1G', errno.EINVAL),
                ('user.sluice.tenants.close', b'a', errno.ENOENT)):
            try:
                os.setxattr(r.mount, name, value)
                raise AssertionError(name)
            except OSError as found:
                equal(found.errno, error)
        equal(stat(r)['tenants'], [])
        equal(os.listxattr(r.source), [])


# --- what is refused

def test_changes_that_make_no_sense_are_refused():
    with rig() as r:
        r.serve(LAZY + ',tenant.a.path=/a')
        for words, complaint in (
                (('--close', 'b'), '%s: has no tenant "b"' % r.mount),
                (('-o', 'tenant.b.floor=1M'), 'nobody is tenant "b": tenant.b.cgroup=/PATH, '
                 '.uid=USER or .path=/PATH is needed'),
                (('-o', 'memory=1G'), '"memory=1G": tenant.NAME.KEY=VALUE is needed, with a NAME '
                 'of 1 to 31 letters, digits, "-" and "_"'),
                (('-o', 'tenant.a.uid=x-y'), 'tenant.a.uid cannot be "x-y", only a user of this '
                 'machine, by number or name')):
            refused(('tenants', *words, r.mount), 'sluice tenants: ' + complaint)
        change(r, '-o', 'tenant.a.floor=1M')  # it has a rule
    with tempfile.TemporaryDirectory() as folder:
        refused(('tenants', folder), 'sluice tenants: %s: is not where a sluice mount is' % folder,
                status=1)


def test_rules_that_make_no_sense_are_refused():
    need_mounts()
    with tempfile.TemporaryDirectory() as source, tempfile.TemporaryDirectory() as folder:
        for option, complaint in (
                ('tenant.a.uid=no-such-user',
                 'tenant.a.uid cannot be "no-such-user", only a user of this machine, by number '
                 'or name'),
                ('tenant.a.dirty_byte=1M',
                 'unknown setting "tenant.a.dirty_byte"; did you mean "tenant.a.dirty_bytes"?'),
                ('tenant.a.path=a', 'tenant.a.path cannot be "a", only a path from the root of '
                 'the mount, as /a/b'),
                ('tenant.a.floor=1M', 'nobody is tenant "a": tenant.a.cgroup=/PATH, .uid=USER or '
                 '.path=/PATH is needed'),
                ('tenant.a', '"tenant.a": tenant.NAME.KEY=VALUE is needed, with a NAME of 1 to 31 '
                 'letters, digits, "-" and "_"')):
            refused(('mount', '-f', '-o', option, source, folder),
                    'sluice mount: ' + complaint)


if __name__ == '__main__':
    program.main(globals())
