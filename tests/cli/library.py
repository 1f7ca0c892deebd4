# SPDX-License-Identifier: MIT
"""The library as it is installed: its names, its probes, its versions, its manual page, and the
example."""
import ctypes
import glob
import os
import re
import shutil
import subprocess
import threading

import program
from program import ROOT, Skip, contains, equal

BUILD = os.path.dirname(program.SLUICE)
SHARED = os.path.join(BUILD, 'include', 'libsluice.so.0')
STATIC = os.path.join(BUILD, 'include', 'libsluice.a')
HEADER = os.path.join(ROOT, 'include', 'sluice.h')
EXAMPLE = os.path.join(ROOT, 'examples', 'hello.c')
HELLO = 'Hello, page cache.\ndebt: 4096 bytes, after fsync 0; written: 4096\n'


def read(path):
    with open(path) as f:
        return f.read()


def output(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode:
        raise AssertionError('%s: status %d\n%s' % (' '.join(command), done.returncode,
                                                    done.stderr.decode()))
    return done.stdout.decode()


def tool(name):
    if not shutil.which(name):
        raise Skip(name + ' is not installed')
    return name


def plain():
    """Programs that are built here must get along with the library as it was built."""
    if '__asan_init' in output(tool('nm'), '-D', SHARED) or \
            '__tsan_init' in output('nm', '-D', SHARED):
        raise Skip('the library is built with a sanitizer')
    return tool('cc')


def code():
    """The header without comments and directives."""
    text = re.sub(r'/\*.*?\*/', '', read(HEADER), flags=re.DOTALL)
    return re.sub(r'^#.*$', '', text, flags=re.MULTILINE)


def words(text):
    """The words of a piece of C, whatever white space is between them."""
    return ' '.join(re.findall(r'\w+|\S', text))


def prototypes():
    """{name: the declaration as words}"""
    found = {}
    for text in re.findall(r'SLUICE_API\s+([^;]*);', code()):
        found[re.search(r'(sluice_\w+)\(', text).group(1)] = words(text)
    assert len(found) > 30, found
    return found


def structs():
    """{name: its fields}"""
    found = {}
    for name, body in re.findall(r'struct (sluice_\w+) \{(.*?)\n\};', code(), re.DOTALL):
        found[name] = [a or b for a, b in re.findall(
            r'\(\*(\w+)\)\([^;]*;|(\w+)(?:\[\w+\])?;', body)]
    assert sorted(found) == ['sluice_event', 'sluice_loss', 'sluice_recovered', 'sluice_stats',
                             'sluice_store', 'sluice_tenant_limits', 'sluice_tenant_stats',
                             'sluice_unsafe'], found
    return found


# --- names

def test_only_what_the_header_declares_can_be_seen():
    lines = output(tool('nm'), '-D', '--defined-only', SHARED).splitlines()
    equal(sorted(line.split()[2] for line in lines), sorted(prototypes()))
    lines = output('nm', '-g', '--defined-only', STATIC).splitlines()
    seen = [line.split()[2] for line in lines if len(line.split()) == 3]
    mine = [n for n in seen if not re.match(r'_\.stapsdt|__(asan|odr_asan|tsan|sanitizer|ubsan)', n)]
    equal(sorted(mine), sorted(prototypes()))


def test_the_name_to_link_with_has_a_version():
    found = output(tool('readelf'), '-d', SHARED)
    contains(found, 'Library soname: [libsluice.so.0]')
    version = re.search(r"version: '([\d.]+)'", read(os.path.join(ROOT, 'meson.build'))).group(1)
    equal(os.path.basename(os.path.realpath(SHARED)), 'libsluice.so.' + version)


def test_every_event_is_a_probe():
    table = re.search(r'#define TRACE_EVENTS\(X\).*?\n\n', read(
        os.path.join(ROOT, 'src/writeback/trace.h')), re.DOTALL).group()
    events = re.findall(r'X\([A-Z_]+,\s+(?:\\\s+)?(\w+)', table)
    assert len(events) >= 12, events
    for path in (SHARED, program.SLUICE):
        notes = output(tool('readelf'), '-n', path)
        probes = re.findall(r'Provider: sluice\s+Name: (\w+)\s+Location: \w+, Base: \w+, '
                            r'Semaphore: 0x(\w+)\s+Arguments: (.*)', notes)
        equal(sorted({name for name, _, _ in probes}), sorted(events))
        equal(len({semaphore for _, semaphore, _ in probes}), 1)
        assert int(probes[0][1], 16) != 0
        # one argument for each field, twelve at most
        counts = {name: len(arguments.split()) for name, _, arguments in probes}
        equal(counts['balance_dirty_pages'], 12)
        equal(counts['global_dirty_state'], 7)
        equal(counts['writeback_pages_written'], 1)


# --- the example, installed and not

def test_the_example_is_short_and_runs():
    hello = os.path.join(BUILD, 'examples', 'hello')
    assert len(read(EXAMPLE).splitlines()) < 60
    equal(output(hello, 'f'), HELLO)
    equal(read('f'), 'Hello, page cache.\n')
    done = subprocess.run([hello, 'no/f'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal((done.returncode, done.stderr), (1, b'hello: no/f: No such file or directory\n'))
    done = subprocess.run([hello], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal((done.returncode, done.stderr), (1, b'hello: which file?\n'))


def installed():
    """Installs into the current folder; returns the folder of the library."""
    output(tool('meson'), 'install', '-C', BUILD, '--no-rebuild', '--destdir', os.getcwd())
    return os.path.dirname(glob.glob('usr/**/libsluice.a', recursive=True)[0])


def pkg_config(folder, *options):
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.abspath(folder + '/pkgconfig'),
               PKG_CONFIG_SYSROOT_DIR=os.getcwd())
    return output(tool('pkg-config'), *options, 'sluice', env=env).split()


def installed_files():
    return sorted(os.path.relpath(os.path.join(at, f), os.getcwd())
                  for at, _, files in os.walk('.') for f in files)


def test_a_program_is_built_against_what_is_installed():
    cc = plain()
    folder = installed()
    names = [os.path.basename(f) for f in installed_files()]
    for name in ('libsluice.so', 'libsluice.so.0', 'libsluice.a', 'sluice.h', 'sluice.pc',
                 'sluice.3', 'sluice'):
        assert name in names, (name, names)
    flags = pkg_config(folder, '--cflags') + ['-Wall', '-Werror']
    output(cc, EXAMPLE, '-o', 'shared', *flags, *pkg_config(folder, '--libs'))
    contains(output(tool('readelf'), '-d', 'shared'), 'libsluice.so.0')
    equal(output('./shared', 'f', env=dict(os.environ, LD_LIBRARY_PATH=folder)), HELLO)
    libraries = pkg_config(folder, '--libs', '--static')
    static = [folder + '/libsluice.a' if word == '-lsluice' else word for word in libraries]
    output(cc, EXAMPLE, '-o', 'static', *flags, *static)
    assert 'libsluice' not in output('readelf', '-d', 'static')
    equal(output('./static', 'f'), HELLO)


def test_a_program_may_have_names_as_ours():
    """The static library keeps its own names to itself."""
    cc = plain()
    with open('p.c', 'w') as f:
        f.write('#include <sluice.h>\n#include <stdio.h>\n'
                'int device_create(void) { return 1; }\nint engine_create(void) { return 2; }\n'
                'int file_open(void) { return 3; }\nint policy_find(void) { return 4; }\n'
                'int main(void)\n{\n\tstruct sluice *c;\n'
                '\tprintf("%d %d\\n", sluice_create(NULL, NULL, 0, &c), device_create());\n'
                '\treturn sluice_destroy(c, NULL, NULL) + engine_create() - 2 + file_open() - 3 +\n'
                '\t       policy_find() - 4;\n}\n')
    output(cc, 'p.c', '-I', os.path.dirname(HEADER), STATIC, '-linih', '-luring', '-lm',
           '-pthread', '-o', 'p')
    equal(output('./p'), '0 1\n')


def test_the_header_is_plain_c_and_cpp():
    with open('p.c', 'w') as f:
        f.write('#include <sluice.h>\nint main(void)\n{\n\treturn sluice_version()[0] == 0;\n}\n')
    flags = ['-I', os.path.dirname(HEADER), '-Wall', '-Wextra', '-Werror', '-pedantic',
             '-fsyntax-only']
    output(tool('cc'), '-std=c99', *flags, 'p.c')
    if not shutil.which('c++'):
        raise Skip('no C++ compiler is installed')
    output('c++', '-std=c++98', '-Wno-long-long', *flags, '-x', 'c++', 'p.c')


# --- versions

OTHER_AGE = r'''
#include <fcntl.h>
#include <sluice.h>
#include <stdio.h>
#include <string.h>

static char bytes[4096];

static ssize_t get(void *ctx, const struct iovec *iov, int count, uint64_t offset)
{
	(void)ctx; (void)iov; (void)count; (void)offset;
	return 0;
}

static ssize_t put(void *ctx, const struct iovec *iov, int count, uint64_t offset)
{
	(void)ctx; (void)count; (void)offset;
	memcpy(bytes, iov[0].iov_base, iov[0].iov_len < 4096 ? iov[0].iov_len : 4096);
	return (ssize_t)iov[0].iov_len;
}

int main(void)
{
	struct { struct sluice_stats s; char canary[64]; } around;
	struct { struct sluice_store s; char canary[64]; } store;
	struct sluice *c;
	struct sluice_file *f;
	int bad = 0;

	memset(&around, 0x5a, sizeof(around));
	memset(&store, 0x5a, sizeof(store)); /* behind the table is what would crash */
	memset(&store.s, 0, sizeof(store.s));
	store.s.size = sizeof(store.s);
	store.s.read = get;
	store.s.write = put;
	around.s.size = sizeof(around.s);
	if (sluice_create(NULL, NULL, 0, &c) || sluice_stats(c, &around.s))
		return 1;
	for (int i = 0; i < 64; i++)
		bad |= around.canary[i] != 0x5a;
	if (sluice_open_store(c, &store.s, &store, 0, O_RDWR, &f) ||
	    sluice_pwrite(f, "old", 3, 0, 0) != 3 || sluice_close(f))
		return 2;
	printf("%d %d %d %s\n", bad, around.s.size <= sizeof(around.s),
	       around.s.memory_bytes == 256 << 20, bytes);
	return sluice_destroy(c, NULL, NULL);
}
'''


def built_with(cc, header, name):
    os.mkdir(name)
    with open(name + '/sluice.h', 'w') as f:
        f.write(header)
    with open(name + '/p.c', 'w') as f:
        f.write(OTHER_AGE)
    output(cc, name + '/p.c', '-I', name, SHARED, '-o', name + '/p',
           '-Wl,-rpath,' + os.path.dirname(SHARED))
    return name + '/p'


def test_programs_of_other_ages_run():
    """One compiled with a header that ended earlier in both structs, and one with a later one."""
    cc = plain()
    now = read(HEADER)
    older, cut = re.subn(r'\n\tchar device\[96\];.*?\n\};', '\n};', now, flags=re.DOTALL)
    older, more = re.subn(r'\n\t/\*[^/]*\*/\n\tint \(\*truncate\).*?\n\};', '\n};', older,
                          flags=re.DOTALL)
    equal((cut, more), (1, 1))
    assert 'unsafe_files' not in older and 'files_idle' not in older and '(*release)' not in older
    newer, added = re.subn(r'(\tuint64_t unsafe_files;[^\n]*\n)', r'\1\tuint64_t unheard_of[4];\n', now)
    newer, more = re.subn(r'(\tvoid \(\*release\)[^\n]*\n)', r'\1\tint (*unheard_of)(void *ctx);\n',
                          newer)
    equal((added, more), (1, 1))
    for header, name in ((older, 'older'), (now, 'now'), (newer, 'newer')):
        equal(output(built_with(cc, header, name)), '0 1 1 old\n')


def test_it_can_be_loaded_late():
    plain()
    library = ctypes.CDLL(SHARED)
    library.sluice_version.restype = ctypes.c_char_p
    equal(library.sluice_version().decode(), re.search(
        r"version: '([\d.]+)'", read(os.path.join(ROOT, 'meson.build'))).group(1))
    cache, problems = ctypes.c_void_p(), []
    equal(library.sluice_create(None, None, 0, ctypes.byref(cache)), 0)

    def work(name):
        f = ctypes.c_void_p()
        if library.sluice_open(cache, name, os.O_RDWR | os.O_CREAT, 0o644, ctypes.byref(f)) or \
                library.sluice_pwrite(f, b'late', ctypes.c_size_t(4), ctypes.c_uint64(0), 0) != 4 \
                or library.sluice_close(f):
            problems.append(name)

    threads = [threading.Thread(target=work, args=(b'f%d' % i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    equal(problems, [])
    equal(library.sluice_destroy(cache, None, None), 0)
    equal(read('f7'), 'late')


# --- the manual page

PAGE = os.path.join(ROOT, 'docs', 'man', 'sluice.3')


def test_the_manual_has_the_headers_functions():
    synopsis = read(PAGE).split('.Sh SYNOPSIS')[1].split('.Sh ')[0]
    found = {}
    for kind, name, arguments in re.findall(r'\.Ft ([^\n]*)\n\.Fo (\w+)\n(.*?)\.Fc', synopsis,
                                            re.DOTALL):
        listed = [a.strip('"') for a in re.findall(r'\.Fa (.*)', arguments)]
        found[name] = words('%s %s(%s)' % (kind.strip('"'), name, ', '.join(listed)))
    equal(sorted(found.values()), sorted(prototypes().values()))
    described = set(re.findall(r'\.Fn (\w+)', read(PAGE).split('.Sh DESCRIPTION')[1]))
    equal(sorted(described), sorted(prototypes()))


def test_the_manual_has_the_headers_fields_and_constants():
    page = read(PAGE)
    for name, fields in structs().items():
        listed = re.search(r'\.Vt struct %s :\n\.Bl[^\n]*\n(.*?)\n\.El' % name, page, re.DOTALL)
        equal(re.findall(r'^\.It Va (\w+)', listed.group(1), re.MULTILINE), fields)
    constants = re.findall(r'^#define (SLUICE_[A-Z_]+)\s+\d', read(HEADER), re.MULTILINE)
    assert len(constants) > 15, constants
    equal(sorted(set(re.findall(r'SLUICE_[A-Z_]+', page))), sorted(constants))


def test_manual_and_header_have_every_setting():
    table = read(os.path.join(ROOT, 'src/lib/config.c')).split('keys[] = {')[1].split('\n};')[0]
    rows = re.findall(r'MEMORY\("(\w+)"|VM\((\w+),|DEVICE\("(\w+)"|\{ "\w+", "(\w+)",', table)
    keys = [''.join('vm.' + word if at == 1 and word else word for at, word in enumerate(row))
            for row in rows]
    assert len(keys) == 24, keys
    page = read(PAGE).split('.Sh SETTINGS')[1].split('.Sh ')[0]
    listed = [key for line in re.findall(r'^\.It Ic (.*)', page, re.MULTILINE)
              for key in line.split(' , ')]
    equal(sorted(listed), sorted(keys + ['policy']))
    comment = read(HEADER).split('Makes a cache from')[1].split('*/')[0]
    named = re.findall(r'^ \*\t([a-z][\w.]*)', comment, re.MULTILINE)
    equal(sorted(named), sorted(keys + ['policy']))


program.main(globals())
