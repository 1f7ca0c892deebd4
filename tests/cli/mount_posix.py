# SPDX-License-Identifier: MIT
"""sluice mount against a plain directory, call by call: the matrix of posix_matrix.py, of which
some cases are drawn here and all that there is time for under SLUICE_SOAK."""
import os

import posix_matrix
import program
from mount_rig import ends, rig, sh
from program import equal

CASES = 40000 if os.environ.get('SLUICE_SOAK') else 500


def compare_matrix(options, seed, count):
    with rig() as r:
        child = r.serve(options)
        os.chmod(r.folder, 0o755)
        some = posix_matrix.cases(seed, count)
        differ = 0
        for wanted, found in zip(posix_matrix.run(r.plain, some), posix_matrix.run(r.mount, some)):
            if found != wanted:
                differ += 1
                print('# directory: %s\n# mount:     %s' % (wanted, found))
        equal((differ, len(some)), (0, count))
        sh('umount', r.mount)
        equal(ends(child), '')


def test_each_call_on_each_kind_of_object_does_what_it_does_in_a_directory():
    compare_matrix('memory=64M', 1, CASES)


def test_so_it_does_without_the_kernels_cache():
    compare_matrix('memory=64M,reads=direct', 2, CASES // 3)


program.main(globals())
