# SPDX-License-Identifier: MIT
"""What the parts of bench/mount.py are built of: file systems, mounts and their ends, fio, rows."""
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import time

import p2


def sh(*words, **options):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise SystemExit('mount: %s: %s' % (' '.join(words), done.stdout.decode().strip()))
    return done.stdout.decode().strip()


def quietly(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode


def make_folder(*parts):
    path = os.path.join(*parts)
    os.makedirs(path, exist_ok=True)
    return path


def is_mounted(path):
    """Also of one whose server was killed, which stat(2) cannot tell."""
    with open('/proc/mounts') as f:
        return any(line.split()[1] == path for line in f)


def unmount(path):
    """What a killed program had under way holds it for a while."""
    for _ in range(50):
        if not is_mounted(path) or not quietly('umount', path):
            return
        time.sleep(0.1)
    quietly('umount', '-l', path)


class Server:
    """A FUSE server in the foreground, and the folder it serves."""

    def __init__(self, path, words):
        self.path = make_folder(path)
        self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(500):
            if is_mounted(self.path):
                return
            if self.child.poll() is not None:
                break
            time.sleep(0.01)
        self.end()
        raise SystemExit('mount: did not start: ' + ' '.join(words))

    def kill(self):
        """So that what is dirty in it is not written."""
        self.child.kill()
        self.end()

    def end(self):
        unmount(self.path)
        try:
            self.child.wait(60)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def counts(self):
        """CPU time in nanoseconds and switches of its threads, ever."""
        cpu = switches = 0
        folder = '/proc/%d/task' % self.child.pid
        for task in os.listdir(folder):
            with open(os.path.join(folder, task, 'schedstat')) as f:
                cpu += int(f.read().split()[0])
            with open(os.path.join(folder, task, 'status')) as f:
                switches += sum(int(line.split()[1]) for line in f if 'ctxt_switches' in line)
        return cpu, switches


def serve(stack, sluice, source, path, options):
    server = Server(path, [sluice, 'mount', '-f', '-o', options, source, path])
    stack.callback(server.kill)
    return server


def serve_bindfs(stack, source, path):
    server = Server(path, ['bindfs', '-f', source, path])
    stack.callback(server.kill)
    return server


def serve_nothing(stack, passthrough, path):
    server = Server(path, [passthrough, path])
    stack.callback(server.kill)
    return server


@contextlib.contextmanager
def work_folder():
    """On tmpfs; everybody may look for names in it, since PostgreSQL runs as a user of its own."""
    folder = make_folder('/dev/shm', 'sluice-mount-%d' % os.getpid())
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def file_system(folder, size='6G'):
    """XFS on a loop device, its bytes on tmpfs: as fast as a file system can be."""
    image, path = os.path.join(folder, 'fast'), make_folder(folder, 'fs')
    loop = None
    sh('truncate', '-s', size, image)
    try:
        loop = sh('losetup', '--find', '--show', '--direct-io=on', image)
        sh('mkfs.xfs', '-q', '-K', '-f', loop)
        sh('mount', loop, path)
        yield path
    finally:
        unmount(path)
        if loop:
            quietly('losetup', '-d', loop)
        os.unlink(image)


@contextlib.contextmanager
def slow_disk(sluice, folder):
    """`sluice device` under a loop device; p2.py has it. The caller brings it up."""
    disk = p2.Disk(sluice, make_folder(folder, 'disk'))
    try:
        yield disk
    finally:
        disk.down()
        shutil.rmtree(disk.folder, ignore_errors=True)


@contextlib.contextmanager
def dirty_limits(limit, background):
    """The kernel's, for the time being."""
    vm = {name: p2.get(p2.VM + name) for pair in p2.PAIRS for name in pair}
    try:
        p2.put(p2.VM + 'dirty_background_bytes', background)
        p2.put(p2.VM + 'dirty_bytes', limit)
        yield
    finally:
        for in_bytes, ratio in p2.PAIRS:
            name = in_bytes if vm[in_bytes] != '0' else ratio
            p2.put(p2.VM + name, vm[name])


def fio(folder, *options, runtime=None):
    """The first job of fio's report; `options` are of its command line, or job files."""
    words = ['fio', '--output-format=json', *options]
    if runtime:
        words += ['--time_based', '--runtime=%g' % runtime]
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    text = done.stdout.decode()
    if done.returncode:
        raise SystemExit('mount: fio failed: ' + done.stderr.decode().strip()[:300])
    return json.loads(text[text.index('{'):])['jobs'][0]


def in_turns(rounds, ways):
    """Medians of what each of the ways gives, by name: they take turns, so that what else the
    machine does meets all alike."""
    found = {name: [] for name, _ in ways}
    for i in range(rounds):
        for name, way in ways if i % 2 == 0 else reversed(ways):
            found[name].append(way())
    return {name: statistics.median(values) for name, values in found.items()}


ROWS = []


def row(what, value, wanted, good):
    """One figure, what it should be, and whether it is."""
    print('%-58s %10s   wanted %-10s %s' % (what, value, wanted, 'yes' if good else 'NO'),
          flush=True)
    ROWS.append((what, value, wanted, 'yes' if good else '**no**'))


def print_table():
    """All rows again, to be put into a text."""
    print('\n| | measured | wanted | |\n|---|---|---|---|')
    for words in ROWS:
        print('| %s | %s | %s | %s |' % words)


def ratio_row(what, ratio, least):
    row(what, '%.2fx' % ratio, '>= %.2fx' % least, ratio >= least)


def note(text):
    print('    ' + text, flush=True)


def on_signal(number, frame):
    raise SystemExit('mount: ended by signal %d' % number)


def clean_up_when_told_to_end():
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, on_signal)
