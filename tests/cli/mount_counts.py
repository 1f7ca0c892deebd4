# SPDX-License-Identifier: MIT
"""What a mount costs, counted: the system calls of its daemon for what programs do most, and that
it has none when nobody does anything."""
import contextlib
import os
import re
import subprocess
import time

import program
from mount_rig import read_status, rig, sh, traced, wait_until
from program import SLUICE, Skip

FILES = 100

# What the C library and the sanitizers call when a thread starts or ends, which a mount's may at
# any time, and to wait.
THREADS = ('futex', 'clone3', 'clone', 'rseq', 'set_robust_list', 'gettid', 'sched_getaffinity',
           'sigaltstack', 'rt_sigprocmask', 'rt_sigtimedwait', 'restart_syscall', 'mmap', 'munmap',
           'mprotect', 'madvise', 'exit', 'prctl')


class Counted:
    """The system calls of a process while it was looked at, by name."""

    def __init__(self):
        self.calls = {}

    def read(self, path):
        with open(path, errors='replace') as f:
            for line in f:
                call = re.match(r'\d+ +(\w+)\(', line)
                if call:
                    self.calls[call.group(1)] = self.calls.get(call.group(1), 0) + 1

    def all(self, *names):
        return sum(self.calls.get(name, 0) for name in names)

    def at_most(self, each):
        """Calls for each of FILES, but those of THREADS; a tenth may be others' business."""
        total = sum(self.calls.values()) - self.all(*THREADS)
        if total > FILES * each * 1.1:
            raise AssertionError('%.1f calls each, not %d: %s' % (total / FILES, each, self.calls))


@contextlib.contextmanager
def counted(r, child):
    out, found = os.path.join(r.folder, 'calls'), Counted()
    with traced(child, '-o', out):
        os.sync()  # what was begun before is written
        yield found
        time.sleep(0.1)  # what nobody waits for, as the end of a file, is done
    found.read(out)


def test_an_overwrite_is_two_calls():
    with rig() as r:
        child = r.serve()
        with open(os.path.join(r.mount, 'file'), 'wb', buffering=0) as f:
            f.write(bytes(1 << 20))
            with counted(r, child) as c:
                for i in range(FILES):
                    os.pwrite(f.fileno(), b'x' * 4096, i * 4096)
        c.at_most(2)  # the request is read, and answered


def test_a_made_and_written_file_is_six_requests():
    with rig() as r:
        child = r.serve()
        with counted(r, child) as c:
            for i in range(FILES):
                with open(os.path.join(r.mount, str(i)), 'wb', buffering=0) as f:
                    f.write(b'x')
        # folder's attributes, look-up, creation, capabilities?, write, end; each read and answered
        assert c.all('read') <= 6.6 * FILES, c.calls
        assert c.all('fallocate') <= FILES, c.calls
        assert c.all('fsync', 'fdatasync', 'ftruncate', 'readlink', 'statx', 'getxattr',
                     'removexattr') == 0, c.calls
        assert c.all('openat', 'open') <= 2.2 * FILES, c.calls  # to hold it, and to write
        c.at_most(25)


def test_what_is_known_is_not_opened_to_look_it_up():
    with rig() as r:
        child = r.serve()
        for i in range(FILES):
            with open(os.path.join(r.mount, str(i)), 'wb'):
                pass
        time.sleep(1.1)  # the kernel asks again for what it was told a second ago
        with counted(r, child) as c:
            for i in range(FILES):
                os.stat(os.path.join(r.mount, str(i)))
        assert c.all('openat', 'open', 'close') <= 0.1 * FILES, c.calls
        c.at_most(4)


def test_what_is_not_there_is_asked_for_once():
    with rig() as r:
        child = r.serve()
        os.path.exists(os.path.join(r.mount, 'none'))
        with counted(r, child) as c:
            for _ in range(FILES):
                assert not os.path.exists(os.path.join(r.mount, 'none'))
        # again when a second has passed, which it may take a slow machine several times
        assert c.all('read') <= FILES / 2, c.calls


def test_a_removed_file_is_neither_opened_nor_cut_off():
    with rig() as r:
        child = r.serve()
        for i in range(FILES):
            with open(os.path.join(r.mount, str(i)), 'wb') as f:
                f.write(b'x')
        with counted(r, child) as c:
            for i in range(FILES):
                os.unlink(os.path.join(r.mount, str(i)))
        assert c.all('openat', 'open', 'ftruncate', 'fsync', 'fdatasync') <= 0.1 * FILES, c.calls
        assert c.all('unlinkat') == FILES, c.calls
        c.at_most(18)


def test_a_folder_that_did_not_change_is_opened_but_not_read_again():
    with rig() as r:
        child = r.serve()
        names = {str(i) for i in range(20)}
        for name in names:
            with open(os.path.join(r.mount, name), 'wb'):
                pass
        time.sleep(0.1)  # its last change is older than a tick of the clock of files
        with counted(r, child) as c:
            for _ in range(FILES):
                assert set(os.listdir(r.mount)) == names
        # once a second, so that names and attributes are as fresh; and a slow machine may take some
        assert c.all('getdents64') <= FILES / 2, c.calls
        assert c.all('read') <= 2.7 * FILES, c.calls  # to open it, and the end of that


def test_many_idle_files_are_not_written_by_who_closes_others():
    with rig() as r:
        child = r.serve()
        with counted(r, child) as c:
            for i in range(1200):  # more than a library's cache keeps
                with open(os.path.join(r.mount, str(i)), 'wb') as f:
                    f.write(b'x')
        assert c.all('fsync', 'fdatasync') == 0, c.calls


def test_an_idle_mount_does_nothing():
    with rig() as r:
        child = r.serve()
        with open(os.path.join(r.mount, 'file'), 'wb') as f:
            f.write(bytes(1 << 20))
        sh(SLUICE, 'sync', r.mount)

        def switches():
            return {task: read_status(child.pid, task, 'voluntary_ctxt_switches')
                    for task in os.listdir('/proc/%d/task' % child.pid)}
        # the last look of the flusher, and threads that end when they have had nothing to do
        before = None
        for _ in range(5):
            time.sleep(6)
            before, now = switches(), before
            if now == before:
                return
        raise AssertionError('it wakes up again and again: %s, then %s' % (now, before))


program.main(globals())
