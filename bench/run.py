#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the benchmarks of a build folder, one after the other, and says on what machine.

    run.py FOLDER [WORD [PART]...]      those with WORD in their name, and these parts of them
"""
import json
import os
import platform
import subprocess
import sys


def processor():
    try:
        with open('/proc/cpuinfo') as f:
            for line in f:
                if line.startswith('model name'):
                    return line.split(':', 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def main():
    if len(sys.argv) < 2:
        sys.exit('usage: run.py FOLDER [WORD [PART]...]')
    folder, word, parts = sys.argv[1], ''.join(sys.argv[2:3]), sys.argv[3:]
    listed = json.loads(subprocess.run(['meson', 'introspect', '--benchmarks', folder],
                                       check=True, stdout=subprocess.PIPE).stdout)
    chosen = [b for b in listed if word in b['name']]
    if not chosen:
        sys.exit('no benchmark has "%s" in its name; there are: %s' % (
            word, ' '.join(sorted(b['name'] for b in listed))))
    print('%s, %d CPUs, Linux %s' % (processor(), os.cpu_count(), platform.release()))
    bad = 0
    for b in sorted(chosen, key=lambda b: b['name']):
        print('\n%s' % b['name'], flush=True)
        status = subprocess.run(b['cmd'] + parts, env=dict(os.environ, **b['env'])).returncode
        if status:
            bad += 1
            print('%s failed: exit status %d' % (b['name'], status), flush=True)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
