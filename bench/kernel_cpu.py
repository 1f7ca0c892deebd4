# SPDX-License-Identifier: MIT
"""CPU seconds of the kernel's own threads, for benchmarks that count what I/O costs beside the
process that asked for it."""
import glob
import os

TICKS = os.sysconf('SC_CLK_TCK')


def kernel_threads_s():
    """By their ids: some end meanwhile."""
    seconds = {}
    for path in glob.glob('/proc/[0-9]*/stat'):
        try:
            with open(path) as f:
                fields = f.read().rsplit(')', 1)[1].split()
        except OSError:
            continue
        if fields[1] == '2':
            seconds[path] = (int(fields[11]) + int(fields[12])) / TICKS
    return seconds


def kernel_threads_since(before):
    return sum(max(0, s - before.get(path, 0)) for path, s in kernel_threads_s().items())
