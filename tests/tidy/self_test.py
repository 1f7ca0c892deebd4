#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each rule of tidy.py must hold for a small good tree, and complain, with file and line, about
each small way to break it."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tidy

SPDX = '/* SPDX-License-Identifier: MIT */\n'
HASH = '# SPDX-License-Identifier: MIT\n'
MAP = '# Architecture\n\n## Map of the folders\n\n| folder | what |\n|---|---|\n'
GOOD = {
    'meson.build': HASH + "folders = ['base', 'world', 'cache']\n",
    'dev': '#!/bin/sh\n' + HASH,
    'src/base/meson.build': HASH + "core_sources += files('a.c')\n",
    'src/base/a.c': SPDX + '#include "base/a.h"\n#include <stdio.h>\n\nint a(void)\n{\n'
                           '\treturn snprintf(NULL, 0, "time(0) stdout");\n}\n',
    'src/base/a.h': SPDX + 'int a(void); /* calls no printf() and no pthread_create() */\n',
    'src/world/meson.build': HASH + "core_sources += files('w.c')\n",
    'src/world/w.c': SPDX + '#include "base/a.h"\n#include "world/w.h"\n'
                            'int w(void)\n{\n\treturn (int)time(NULL) + world_random();\n}\n',
    'src/world/w.h': SPDX,
    'src/cache/meson.build': HASH + "core_sources += files('c.c')\n",
    'src/cache/c.c': SPDX + '#include "world/w.h"\nint c(struct ops *o)\n{\n'
                            '\treturn o->time(o) + runtime(3);\n}\n',
    'src/cli/meson.build': HASH + "cli_sources += files('main.c')\n",
    'src/cli/main.c': SPDX + '#include "cache/c.h"\nint main(void)\n{\n\treturn puts("x");\n}\n',
    'tests/base/meson.build': HASH + "unit = ['a']\n",
    'tests/base/test_a.c': SPDX,
    'bench/meson.build': HASH + "bench = ['speed']\n",
    'bench/speed.c': SPDX,
    'docs/architecture.md': MAP + '| `src/base/` | a |\n| `src/world/` | w |\n| `src/cache/` | c |\n'
                                  '| `src/cli/` | m |\n| `tests/`, `bench/` | t |\n| `docs/` | d |\n',
    '.hidden/x.c': 'no licence, not built',
    'build-x/x.c': 'no licence, not built',
}
LONG = '\tint x;\n'
TO_DO = 'TO' + 'DO'

# rule, path, its new content (None: gone; a function: made of the old), part of the complaint
BAD = [
    ('folder_map_is_true', 'src/new/n.h', SPDX, 'lacks `src/new/`'),
    ('folder_map_is_true', 'extra/x', '', 'lacks `extra/`'),
    ('folder_map_is_true', 'docs/architecture.md', lambda s: s + '| `src/gone/` | x |\n',
     '`src/gone/`, which does not exist'),
    ('folder_map_is_true', 'docs/architecture.md', lambda s: s.replace('Map of', 'About'),
     'no section'),
    ('folder_map_is_true', 'docs/architecture.md', None, 'no section'),
    ('folder_map_is_true', 'docs/architecture.md',
     lambda s: s.replace('base', 'W').replace('world', 'base').replace('W', 'world'),
     'bottom folder'),
    # a folder named outside the table, or in another column, is not in the map
    ('folder_map_is_true', 'docs/architecture.md',
     lambda s: s.replace('| `src/base/` | a |', '| base | `src/base/` |') + '\n`src/base/`\n',
     'lacks `src/base/`'),
    ('folders_use_only_what_is_below', 'src/base/a.h', SPDX + '#include "world/w.h"\n',
     'src/base/a.h:2: "world/w.h" is not below src/base/'),
    ('folders_use_only_what_is_below', 'src/cache/c.c', SPDX + '\n#  include "cli/m.h"\n',
     'src/cache/c.c:3: "cli/m.h"'),
    ('folders_use_only_what_is_below', 'src/cache/c.c', SPDX + '#include "c.h"\n',
     'is not written as'),
    ('folders_use_only_what_is_below', 'src/odd/o.h', SPDX, 'src/odd/ is not in the list'),
    ('folders_use_only_what_is_below', 'meson.build', HASH, 'no list `folders`'),
    ('licence_is_named', 'src/base/a.c', 'int a;\n', 'src/base/a.c'),
    ('licence_is_named', 'src/base/a.h', '\n\n' + SPDX, 'src/base/a.h'),
    ('licence_is_named', 'src/base/meson.build', "files('a.c')\n", 'src/base/meson.build'),
    ('licence_is_named', 'src/base/b.S', '\tret\n', 'src/base/b.S'),
    ('licence_is_named', 'dev', '#!/bin/sh\n', 'dev'),
    ('lines_fit', 'src/base/a.h', SPDX + '\t/* ' + 'x' * 90 + ' */\n', 'src/base/a.h:2: 104'),
    ('files_are_short', 'tests/base/test_a.c', SPDX + '\n' * 610, '611 lines'),
    ('functions_are_short', 'src/base/a.c', SPDX + 'int a(void)\n{\n' + LONG * 71 + '}\n',
     'src/base/a.c:3: 71 lines'),
    ('only_the_world_calls_the_system', 'src/cache/c.c', SPDX + 'int t = time (NULL);\n',
     'src/cache/c.c:2: time'),
    ('only_the_world_calls_the_system', 'src/base/a.h', SPDX + '/* \n */ pthread_mutex_t m;\n',
     'src/base/a.h:3: pthread_mutex_t'),
    ('only_the_world_calls_the_system', 'src/cli/main.c', SPDX + 'x = rand() % 6;\n', 'rand'),
    ('only_the_program_prints', 'src/base/a.c', SPDX + 'x = printf("x");\n', ':2: printf'),
    ('only_the_program_prints', 'src/world/w.c', SPDX + '\nfprintf(stderr, "x");\n', ':3: stderr'),
    ('every_source_is_built', 'src/base/b.c', SPDX, 'src/base/b.c: not in'),
    ('every_source_is_built', 'src/base/b.S', SPDX, 'src/base/b.S: not in'),
    ('every_source_is_built', 'bench/other.c', SPDX, 'bench/other.c: not in'),
    ('every_source_is_built', 'tests/base/helper.c', SPDX, 'tests/base/helper.c: not in'),
    ('every_test_is_run', 'tests/base/test_b.c', SPDX, 'tests/base/test_b.c: not in'),
    ('every_test_is_run', 'tests/basic/test_b.c', SPDX, 'mirrors'),
    ('nothing_is_marked_unfinished', 'docs/x.md', 'a\n' + TO_DO + ': b\n', 'docs/x.md:2'),
    ('nothing_is_marked_unfinished', 'src/base/a.c', SPDX + '/* %s later */\n' % TO_DO,
     'src/base/a.c:2'),
]
# What stands right at a limit is allowed.
ALLOWED = [
    ('lines_fit', 'src/base/a.h', SPDX + '\t/* ' + 'x' * 86 + ' */\n'),
    ('files_are_short', 'src/base/a.h', SPDX + '\n' * 599),
    ('functions_are_short', 'src/base/a.c', SPDX + 'int a(void)\n{\n' + LONG * 70 + '}\n'),
    ('every_test_is_run', 'tests/base/meson.build', HASH + "unit = [\n  'z',\n  'a',\n]\n"),
]


def complaints(rule, files):
    with tempfile.TemporaryDirectory() as root:
        for path, content in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
            with open(os.path.join(root, path), 'w', encoding='utf-8') as f:
                f.write(content)
        return list(getattr(tidy, rule)(tidy.Tree(root)))


def changed(path, content):
    files = dict(GOOD)
    if callable(content):
        content = content(files[path])
    files.pop(path, None)
    if content is not None:
        files[path] = content
    return files


def main():
    cases = []
    for rule in tidy.RULES:
        found = complaints(rule.__name__, GOOD)
        cases.append((rule.__name__ + ' holds for a good tree', not found, found))
    for rule, path, content, part in BAD:
        found = complaints(rule, changed(path, content))
        cases.append(('%s sees %s in %s' % (rule, part, path),
                      any(part in c for c in found), found))
    for rule, path, content in ALLOWED:
        found = complaints(rule, changed(path, content))
        cases.append(('%s allows what is right at the limit' % rule, not found, found))
    unbroken = {rule.__name__ for rule in tidy.RULES} - {rule for rule, *_ in BAD}
    cases.append(('every rule is seen to fail', not unbroken, unbroken))
    print('1..%d' % len(cases))
    for number, (name, good, found) in enumerate(cases, 1):
        print('%s %d - %s' % ('ok' if good else 'not ok', number, name))
        if not good:
            print('# complaints: %s' % found)
    return 0 if all(good for _, good, _ in cases) else 1


if __name__ == '__main__':
    sys.exit(main())
