# SPDX-License-Identifier: MIT
"""What the tests of the mount share: a source that is served, a plain directory beside it, and that
nothing of it is left behind."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time

from program import SLUICE, Skip, equal, sluice


def sh(*words, **options):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise AssertionError('%s: %s' % (' '.join(words), done.stdout.decode()))
    return done.stdout.decode().strip()


def need_mounts():
    if os.geteuid() != 0:
        raise Skip('only root may mount')
    try:
        os.close(os.open('/dev/fuse', os.O_RDWR))
    except OSError as error:
        raise Skip('/dev/fuse cannot be opened: ' + error.strerror)
    if 'built without libfuse3' in sluice('mount', '-f', '/nonexistent', '/').err:
        raise Skip('this program was built without libfuse3')


def kernel():
    return tuple(int(word) for word in os.uname().release.split('.')[:2])


def is_mounted(folder):
    with open('/proc/mounts') as f:
        return any(line.split()[1] == folder for line in f)


class Rig:
    """A source, a plain directory beside it, and a place to mount on: all gone at the end."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='sluice-mount-')
        self.source = self.make_folder('source')
        self.plain = self.make_folder('plain')
        self.mount = self.make_folder('mount')
        self.children, self.mounts = [], []

    def make_folder(self, name):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        return path

    def serve(self, options='memory=64M', source=None, env=None, before=None):
        """Starts it in the foreground; returns the process once the folder is served."""
        child = subprocess.Popen([SLUICE, 'mount', '-f', '-o', options, source or self.source,
                                  self.mount], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=env, preexec_fn=before)
        self.children.append(child)
        self.mounts.append(self.mount)
        while not is_mounted(self.mount):
            if child.poll() is not None:
                raise AssertionError('it did not start: ' + child.stderr.read().decode())
            time.sleep(0.01)
        return child

    def mount_tmpfs(self, size):
        path = self.make_folder('small')
        sh('mount', '-t', 'tmpfs', '-o', 'size=%d' % size, 'sluice-test', path)
        self.mounts.append(path)
        return path

    def close(self):
        for path in reversed(self.mounts):
            subprocess.run(['umount', '-l', path], stderr=subprocess.DEVNULL)
        for child in self.children:
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            for line in [] if child.stderr.closed else child.stderr.read().decode().splitlines():
                print('# ' + line)
            child.stdout.close()
            child.stderr.close()
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def rig():
    need_mounts()
    r = Rig()
    try:
        yield r
    finally:
        r.close()


def ends(child, status=0):
    """Waits for its end, which is to have this status; returns what it said."""
    _, err = child.communicate(timeout=60)
    equal((child.returncode, child.returncode and err.decode()), (status, status and err.decode()))
    return err.decode()


def read_status(process, task, name):
    """A number that the system says of a thread; 0 when it is gone."""
    try:
        with open('/proc/%s/task/%s/status' % (process, task)) as f:
            for line in f:
                if line.startswith(name + ':'):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def wait_until(what, condition):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError('it never came that ' + what)


@contextlib.contextmanager
def traced(child, *words):
    """The system calls of a process go by strace, which is told these words."""
    if not shutil.which('strace'):
        raise Skip('strace is not installed')
    tracer = subprocess.Popen(['strace', '-f', '-qq', *words, '-p', str(child.pid)],
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until('strace looks', lambda: tracer.poll() is not None or child.poll() is not None
                   or all(read_status(child.pid, task, 'TracerPid')
                          for task in os.listdir('/proc/%d/task' % child.pid)))
        if tracer.poll() is not None and child.poll() is None:
            raise Skip('strace may not look here')
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
