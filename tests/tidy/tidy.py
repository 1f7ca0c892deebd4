#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What no compiler checks: that the tree is laid out as the project says.

    tidy.py [ROOT]

Each rule is a function that yields complaints; it is one TAP case. The folders of
src/, bottom to top, are the list `folders` in the root meson.build, with the
program (src/cli/) above them all.
"""
import os
import re
import sys

COLUMNS = 100
FILE_LINES = 610
FUNCTION_LINES = 70

# Only src/world/ may ask the system for time, threads and randomness: elsewhere a call
# like these would make the simulated world lie.
WORLD_ONLY = re.compile(
    r'(?<![\w.>])(clock_gettime|gettimeofday|time|usleep|nanosleep|clock_nanosleep|sleep'
    r'|rand|srand|random|srandom|getrandom)\s*\(|\bpthread_\w+')
# Only src/cli/ may print.
CLI_ONLY = re.compile(r'(?<![\w.>])(v?printf|puts|putchar|perror)\s*\(|\b(stdout|stderr)\b')
# Split, so that this file does not complain about itself.
UNFINISHED = re.compile(r'\b(' + '|'.join(('TO' 'DO', 'FIX' 'ME', 'X' 'XX', 'HA' 'CK')) + r')\b')

NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


class Tree:
    """The files below `root`, as relative paths, without hidden and build folders."""

    def __init__(self, root):
        self.root = root
        self.files = []
        for folder, folders, files in os.walk(root):
            at_top = os.path.samefile(folder, root)
            folders[:] = sorted(f for f in folders if f[0] != '.' and f != '__pycache__'
                                and not (at_top and f.startswith('build')))
            self.files += [os.path.relpath(os.path.join(folder, f), root)
                           for f in sorted(files) if f[0] != '.']
        self.c = [f for f in self.files if f.endswith(('.c', '.h'))]
        self._text = {}

    def text(self, path):
        if path not in self._text:
            try:
                with open(os.path.join(self.root, path), encoding='utf-8') as f:
                    self._text[path] = f.read()
            except FileNotFoundError:
                self._text[path] = ''
            except UnicodeDecodeError:
                self._text[path] = ''  # not text
        return self._text[path]

    def code(self, path):
        """The text with comments and strings blanked, line by line where it was."""
        return NOT_CODE.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), self.text(path))

    def layers(self):
        found = re.search(r'^folders = \[([^\]]*)\]', self.text('meson.build'), re.MULTILINE)
        return re.findall(r"'(\w+)'", found.group(1)) + ['cli'] if found else []


def line_of(text, position):
    return text.count('\n', 0, position) + 1


def folder_map_is_true(tree):
    """docs/architecture.md lists every folder, and every folder it lists exists"""
    page = 'docs/architecture.md'
    section = re.search(r'^## Map of the folders\n(.*?)(?=^## |\Z)', tree.text(page),
                        re.MULTILINE | re.DOTALL)
    if not section:
        yield page + ': no section "## Map of the folders"'
        return
    rows = re.findall(r'^\|([^|\n]*)\|', section.group(1), re.MULTILINE)
    listed = [name.rstrip('/') for row in rows for name in re.findall(r'`([^`]+)`', row)]
    layers = ['src/' + layer for layer in tree.layers()]
    if [f for f in listed if f in layers] != [f for f in layers if f in listed]:
        yield page + ': the map does not go from the bottom folder of src/ to the top one'
    listed = set(listed)
    present = set()
    for path in tree.files:
        parts = path.split('/')[:-1]
        if parts and parts[0] == 'src':
            present.add('/'.join(parts[:2]))
        elif parts:
            present.add(parts[0])
    for folder in sorted(present - listed):
        yield '%s: the map lacks `%s/`' % (page, folder)
    for folder in sorted(listed - present):
        if not os.path.isdir(os.path.join(tree.root, folder)):
            yield '%s: the map lists `%s/`, which does not exist' % (page, folder)


def folders_use_only_what_is_below(tree):
    """each folder of src/ includes headers of itself and of folders below it only"""
    layers = tree.layers()
    if not layers:
        yield 'meson.build: no list `folders`'
    for path in tree.c:
        parts = path.split('/')
        if parts[0] != 'src' or len(parts) < 3:
            continue
        if parts[1] not in layers:
            yield '%s: src/%s/ is not in the list `folders` of meson.build' % (path, parts[1])
            continue
        below = layers[:layers.index(parts[1]) + 1]
        text = tree.text(path)
        for m in re.finditer(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE):
            if m.group(1) == 'sluice.h':
                continue
            if '/' not in m.group(1):
                yield '%s:%d: "%s" is not written as "folder/header.h"' % (
                    path, line_of(text, m.start(1)), m.group(1))
            elif m.group(1).split('/')[0] not in below:
                yield '%s:%d: "%s" is not below src/%s/' % (
                    path, line_of(text, m.start(1)), m.group(1), parts[1])


def licence_is_named(tree):
    """each source file names its licence in its first lines"""
    for path in tree.files:
        if path.endswith(('.c', '.h', '.S', '.py', 'meson.build')) or path == 'dev':
            if 'SPDX-License-Identifier: MIT' not in '\n'.join(tree.text(path).split('\n')[:2]):
                yield path + ': no "SPDX-License-Identifier: MIT" in the first two lines'


def lines_fit(tree):
    """no line of C is wider than 100 columns"""
    for path in tree.c:
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            if len(line.expandtabs(8)) > COLUMNS:
                yield '%s:%d: %d columns' % (path, number, len(line.expandtabs(8)))


def files_are_short(tree):
    """no C file has more than 610 lines"""
    for path in tree.c:
        lines = tree.text(path).count('\n')
        if lines > FILE_LINES:
            yield '%s: %d lines' % (path, lines)


def functions_are_short(tree):
    """no function has more than 70 lines"""
    for path in tree.c:
        start = None
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            if line == '{':
                start = number
            elif line.startswith('}') and start:
                if number - start - 1 > FUNCTION_LINES:
                    yield '%s:%d: %d lines' % (path, start, number - start - 1)
                start = None


def banned(tree, pattern, but):
    for path in tree.c:
        if not path.startswith('src/') or path.startswith(but):
            continue
        code = tree.code(path)
        for m in pattern.finditer(code):
            yield '%s:%d: %s belongs to %s' % (
                path, line_of(code, m.start()), m.group().rstrip('( '), but)


def only_the_world_calls_the_system(tree):
    """time, threads and randomness come from src/world/"""
    yield from banned(tree, WORLD_ONLY, 'src/world/')


def only_the_program_prints(tree):
    """nothing below src/cli/ prints"""
    yield from banned(tree, CLI_ONLY, 'src/cli/')


def every_source_is_built(tree):
    """each C and assembly file stands in the meson.build of its folder"""
    for path in tree.files:
        folder, name = os.path.split(path)
        if not name.endswith(('.c', '.S')) or (folder.startswith('tests/')
                                               and name.startswith('test_')):
            continue
        build = tree.text(folder + '/meson.build')
        entry = name[:-2] if folder == 'bench' else name
        if folder.startswith('tests/') and name.startswith('fuzz_'):
            entry = folder[6:] + '/' + name[5:-2]
        if "'%s'" % entry not in build and "'%s'" % name not in build:
            yield '%s: not in %s/meson.build' % (path, folder)


def every_test_is_run(tree):
    """each tests/FOLDER/test_NAME.c stands in the list `unit` of its folder"""
    for path in tree.c:
        folder, name = os.path.split(path)
        if not folder.startswith('tests') or not re.match(r'test_\w+\.c$', name):
            continue
        units = re.findall(r'^\s*unit \+?= \[([^\]]*)\]', tree.text(folder + '/meson.build'),
                           re.MULTILINE)
        if folder.split('/')[1:2] and folder.split('/')[1] not in tree.layers():
            yield '%s: tests/ mirrors src/, and there is no such folder' % path
        elif "'%s'" % name[5:-2] not in ''.join(units):
            yield '%s: not in the list `unit` of %s/meson.build' % (path, folder)


def nothing_is_marked_unfinished(tree):
    """no file holds a mark of unfinished work"""
    for path in tree.files:
        text = tree.text(path)
        for m in UNFINISHED.finditer(text):
            yield '%s:%d: %s' % (path, line_of(text, m.start()), m.group())


RULES = [
    folder_map_is_true,
    folders_use_only_what_is_below,
    licence_is_named,
    lines_fit,
    files_are_short,
    functions_are_short,
    only_the_world_calls_the_system,
    only_the_program_prints,
    every_source_is_built,
    every_test_is_run,
    nothing_is_marked_unfinished,
]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    tree = Tree(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(here)))
    bad = 0
    print('1..%d' % len(RULES))
    for number, rule in enumerate(RULES, 1):
        complaints = list(rule(tree))
        bad += bool(complaints)
        print('%s %d - %s' % ('not ok' if complaints else 'ok', number, rule.__doc__))
        for complaint in complaints:
            print('# ' + complaint)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
