# SPDX-License-Identifier: MIT
"""sluice mount against a plain directory, call by call: the matrix of posix_matrix.py, of which
some cases are drawn here, and many more under SLUICE_SOAK; the scenes of posix_scenes.py and
posix_suites.py; one file against an array of bytes (tests/mount/one_file.c)."""
import os
import resource
import shutil
import sys

import posix_matrix
import posix_scenes
import posix_suites
import program
from mount_rig import ends, kernel, rig, sh, traced
from program import Skip, equal

SOAK = bool(os.environ.get('SLUICE_SOAK'))
CASES = 40000 if SOAK else 300
BYTES = 5000000 if SOAK else 1500  # operations on one file, twice
ONE_FILE = os.path.abspath(sys.argv[2])


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
    compare_matrix('memory=64M,reads=direct', 2, CASES // 4)


def compare_scenes(options):
    with rig() as r:
        child = r.serve(options)
        os.chmod(r.folder, 0o755)
        os.umask(0o022)
        for scene in posix_scenes.SCENES + posix_suites.SCENES:
            results = [posix_scenes.result_of(scene, os.path.join(root, scene.__name__))
                       for root in (r.plain, r.mount)]
            equal((scene.__name__, results[1]), (scene.__name__, results[0]))
            assert not results[0].startswith('raised'), (scene.__name__, results[0])
        sh('umount', r.mount)
        equal(ends(child), '')


def overlaid(r, lower, upper, work):
    """What programs find in an overlay after they changed it, and what it made of its upper."""
    top = r.make_folder('over' + os.path.basename(os.path.dirname(upper)))
    try:
        sh('mount', '-t', 'overlay', 'sluice-test', '-o',
           'lowerdir=%s,upperdir=%s,workdir=%s' % (lower, upper, work), top)
    except AssertionError as error:
        raise Skip('no overlayfs there: %s' % error)
    r.mounts.append(top)
    with open(top + '/changed', 'a') as f:
        f.write(' and more')
    os.rename(top + '/moved', top + '/was moved')
    os.unlink(top + '/gone')
    os.mkdir(top + '/folder/new')
    os.chmod(top + '/folder/kept', 0o600)
    found = []
    for root in top, upper:
        for folder, folders, files in sorted(os.walk(root)):
            folders.sort()
            for name in sorted(folders + files):
                st = os.lstat(os.path.join(folder, name))
                found.append((folder[len(root):], name, oct(st.st_mode), st.st_rdev, st.st_nlink))
    with open(top + '/changed') as f:
        found.append(f.read())
    sh('umount', top)
    r.mounts.remove(top)
    return found


def test_an_overlay_can_lie_on_it():
    with rig() as r:
        child = r.serve()
        lower = os.path.join(r.mount, 'lower')
        os.makedirs(lower + '/folder')
        for name in 'changed', 'moved', 'gone', 'folder/kept':
            with open(os.path.join(lower, name), 'w') as f:
                f.write(name)
        folders = {}
        for root in r.plain, r.mount:
            folders[root] = [os.path.join(root, name) for name in ('upper', 'work')]
            for folder in folders[root]:
                os.mkdir(folder)
        wanted = overlaid(r, lower, *folders[r.plain])
        out = os.path.join(r.folder, 'calls')
        with traced(child, '-e', 'trace=openat', '-o', out):
            equal(overlaid(r, lower, *folders[r.mount]), wanted)
        with open(out) as f:
            assert 'O_TMPFILE' in f.read()  # it makes copies without a name, if it can


def test_programs_see_in_it_what_they_see_in_a_directory():
    compare_scenes('memory=64M')


def test_so_they_do_without_the_kernels_cache():
    compare_scenes('memory=64M,reads=direct')


def test_nobody_may_do_more_than_as_the_source_is_mounted():
    with rig() as r:
        small = r.mount_tmpfs(16 << 20)
        os.chmod(r.folder, 0o755)
        posix_suites.prepare_limited(small)
        for limits in ('ro', 'nosuid', 'nodev', 'noexec', 'nosuid,nodev,noexec,ro'):
            sh('mount', '-o', 'remount,rw,suid,dev,exec,' + limits, small)
            wanted = posix_suites.what_is_allowed(small)
            child = r.serve(source=small)
            equal((limits, posix_suites.what_is_allowed(r.mount)), (limits, wanted))
            sh('umount', r.mount)
            equal(ends(child), '')


def test_ctime_of_what_was_never_written_is_the_sources():
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))

    with rig() as r:
        child = r.serve('memory=32M,idle_files=16', before=few)
        seen = {}
        for name in ('a', 'b'):
            path = os.path.join(r.mount, name)
            os.close(os.open(path, os.O_CREAT))
            os.utime(path, ns=(10 ** 18, 10 ** 18))
            seen[name] = os.stat(path).st_ctime_ns
            equal((name, os.stat(os.path.join(r.source, name)).st_ctime_ns), (name, seen[name]))
        for i in range(500):  # so that the first ones are forgotten
            os.close(os.open(os.path.join(r.mount, '%d' % i), os.O_CREAT))
        equal({name: os.stat(os.path.join(r.mount, name)).st_ctime_ns for name in seen}, seen)
        sh('umount', r.mount)
        equal(ends(child), '')


def test_times_that_were_set_outlast_the_write_out():
    with rig() as r:
        child = r.serve('memory=32M,idle_files=0')
        when = {}
        for i in range(30):
            path = os.path.join(r.mount, '%d' % i)
            with open(path, 'wb', buffering=0) as f:
                for part in range(4):
                    f.write(bytes(300000))
                    when['%d' % i] = (part + 1) * 10 ** 17 + i
                    os.utime(path, ns=(5, when['%d' % i]))
                    equal(os.stat(path).st_mtime_ns, when['%d' % i])
            with open(path, 'rb') as f:  # the table of paths has given it up, or does so now
                equal(len(f.read(5)), 5)
        for folder in (r.mount, r.source):
            equal({e.name: e.stat().st_mtime_ns for e in os.scandir(folder)}, when)
            if folder == r.mount:
                sh('umount', r.mount)
                equal(ends(child), '')


def filled_by_somebody(folder):
    """How many MiB others than root get into it."""
    path = os.path.join(folder, 'big')
    posix_scenes.in_child(posix_suites.as_somebody, lambda: posix_suites.fill(path))
    size = os.stat(path).st_size
    os.unlink(path)
    return size >> 20


def test_what_a_file_system_keeps_for_root_is_kept():
    with rig() as r:
        if not shutil.which('mkfs.ext4'):
            raise program.Skip('there is no mkfs.ext4')
        image, source = os.path.join(r.folder, 'image'), r.make_folder('small')
        with open(image, 'wb') as f:
            f.truncate(24 << 20)
        sh('mkfs.ext4', '-q', '-m', '40', image)
        sh('mount', '-o', 'loop', image, source)
        r.mounts.append(source)
        for folder, mode in ((source, 0o777), (r.folder, 0o755)):
            os.chmod(folder, mode)
        wanted = filled_by_somebody(source)
        child = r.serve(source=source)
        equal(filled_by_somebody(r.mount), wanted)
        assert wanted < 16, wanted
        sh('umount', r.mount)
        equal(ends(child), '')


def test_files_of_file_systems_within_the_source_are_told_apart():
    with rig() as r:
        for name in ('a', 'b'):
            os.mkdir(os.path.join(r.source, name))
            sh('mount', '-t', 'tmpfs', 'sluice-test', os.path.join(r.source, name))
            r.mounts.append(os.path.join(r.source, name))
            with open(os.path.join(r.source, name, 'f'), 'w') as f:
                f.write(name)
            os.link(f.name, f.name + '2')
        child = r.serve()
        places = [os.path.join(r.mount, name) for name in ('a', 'b', 'a/f', 'b/f')]
        equal(len({os.stat(path).st_ino for path in places}), 4)
        for name in ('a', 'b'):
            path = os.path.join(r.mount, name)
            equal(os.stat(path + '/f').st_ino, os.stat(path + '/f2').st_ino)
            equal([e.inode() for e in os.scandir(path)], [os.stat(path + '/f').st_ino] * 2)
            with open(path + '/f') as f:
                equal(f.read(), name)
            equal([posix_scenes.said(*words) for words in (
                (os.rename, path + '/f', r.mount + '/f'), (os.link, path + '/f', r.mount + '/f'),
                (os.rmdir, path))], ['EXDEV', 'EXDEV', 'EBUSY'])
        sh('umount', r.mount)
        equal(ends(child), '')


def one_file(options, seed, *more):
    with rig() as r:
        small = r.mount_tmpfs(64 << 20)  # whose fsync costs nothing
        child = r.serve(options, source=small)
        sh(ONE_FILE, os.path.join(r.mount, 'f'), str(seed), str(BYTES), *more)
        sh('umount', r.mount)
        equal(ends(child), '')


def test_one_file_is_an_array_of_bytes():
    one_file('memory=64M', 1)


def test_one_file_is_an_array_of_bytes_in_little_memory():
    # where the kernel keeps nothing, only younger ones have shared mappings
    one_file('memory=16M,reads=direct,block_bytes=512,idle_files=0', 2,
             *([] if kernel() >= (6, 6) else ['nomap']))


program.main(globals())
