#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns files into a C file that holds their bytes.

    embed.py OUT NAME=FILE...

Each becomes `const char NAME[]`, ended by a zero byte. What a browser would take for the
end of a script or of a style sheet, or would load from somewhere else, is refused.
"""
import re
import sys

LINE = 90


def text_of(path):
    with open(path, encoding='utf-8') as f:
        text = f.read()
    # where a debugger would look for the sources
    text = re.sub(r'^(//|/\*)# sourceMappingURL=.*$', '', text, flags=re.MULTILINE)
    if re.search(r'</(script|style)|<!--', text, re.IGNORECASE):
        sys.exit('embed.py: %s: would end the script or style sheet it stands in' % path)
    if re.search(r'\b(url\(|@import)', text):
        sys.exit('embed.py: %s: wants to load something' % path)
    return text


def c_string(text):
    """Lines of C string literals."""
    escapes = {'\n': '\\n', '\t': '\\t', '"': '\\"', '\\': '\\\\', '?': '\\?'}
    line = ''
    for byte in text.encode():
        c = chr(byte)
        line += escapes.get(c) or (c if 32 <= byte < 127 else '\\%03o' % byte)
        if len(line) > LINE or c == '\n':
            yield '\t"%s"\n' % line
            line = ''
    if line:
        yield '\t"%s"\n' % line


def main():
    out = '/* SPDX-License-Identifier: MIT */\n/* Made by embed.py. */\n#include "lab/page.h"\n'
    for pair in sys.argv[2:]:
        name, path = pair.split('=', 1)
        out += '\nconst char %s[] =\n' % name + ''.join(c_string(text_of(path))).rstrip('\n') + ';\n'
    with open(sys.argv[1], 'w') as f:
        f.write(out)


main()
