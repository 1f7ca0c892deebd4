#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a benchmark that compares with the kernel's cache where that cache is XFS's.

    on_xfs.py PROGRAM [ARGUMENT]...

As root $SLUICE_BENCH_DIR is an XFS on a loop device meanwhile, unless it is set already. What a
cached write costs depends on the file system: ext4 looks at every block of a large folio for each
write to it, 256 of them in one that 1 MiB was written to, and so takes fifteen times as long.
"""
import os
import shutil
import subprocess
import sys

import p2
from mount_rig import clean_up_when_told_to_end, file_system, work_folder

FREE_GIB = 8


def run(**environment):
    return subprocess.run(sys.argv[1:], env=dict(os.environ, **environment)).returncode


def main():
    if len(sys.argv) < 2:
        sys.exit('usage: on_xfs.py PROGRAM [ARGUMENT]...')
    clean_up_when_told_to_end()
    if 'SLUICE_BENCH_DIR' in os.environ or os.geteuid() or not shutil.which('mkfs.xfs') or \
            p2.available_gib() < FREE_GIB:
        print('the kernel\'s file is in $SLUICE_BENCH_DIR, else in /var/tmp')
        return run()
    with work_folder() as folder, file_system(folder) as fs:
        return run(SLUICE_BENCH_DIR=fs)


if __name__ == '__main__':
    sys.exit(main())
