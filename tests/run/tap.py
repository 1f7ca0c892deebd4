# SPDX-License-Identifier: MIT
"""What one test program said, counted.

Test programs speak TAP (Test Anything Protocol): a plan "1..N", then one line a
case, "ok 1 - name" or "not ok 2 - name"; cmocka skips with "not ok 3 # SKIP name".
A test says why it skips in the line before: "# skip: reason". A program that skips as
a whole says "1..0 # SKIP reason".

A program can also fail as a whole: it dies, ends with an error although every case
passed (sanitizers do that), or leaves cases of its plan out. That is one failure
more, under the name of the program.

Programs of the other kind say nothing that counts: each is one case, and its exit
status tells: 0 passed, 77 skipped, anything else failed. Such a one says why it skips
in a line "skipped: reason".
"""
import re

CASE = re.compile(r'^(not ok|ok)\b\s*\d*\s*(?:- )?(.*)$')
PLAN = re.compile(r'^1\.\.(\d+)')
SKIP = re.compile(r'#\s*SKIP\b\s*(.*)$', re.IGNORECASE)
REASON = re.compile(r'^#\s*skip:\s*(.*)$')
SKIPPED = re.compile(r'^skipped:\s*(.*)$', re.MULTILINE)
SKIP_STATUS = 77  # of meson, automake and others


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []   # names
        self.skipped = []  # (name, reason)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def summary(self):
        return '%d passed, %d failed, %d skipped' % (
            self.passed, len(self.failed), len(self.skipped))


def count(program, output, status):
    """The tally of one program; `status` is its exit status, negative for a signal, or None
    when it ran out of time."""
    tally = Tally()
    planned = None
    seen = 0
    reason = 'no reason given'
    for line in output.splitlines():
        plan, case, why = PLAN.match(line), CASE.match(line), REASON.match(line)
        if plan:
            planned = int(plan.group(1))
            skip = SKIP.search(line)
            if skip and not planned:
                tally.skipped.append((program, skip.group(1) or reason))
        elif why:
            reason = why.group(1)
        elif case:
            seen += 1
            skip = SKIP.search(case.group(2))
            if skip:
                name = skip.group(1) or case.group(2)[:skip.start()].strip()
                tally.skipped.append(('%s: %s' % (program, name), reason))
                reason = 'no reason given'
            elif case.group(1) == 'ok':
                tally.passed += 1
            else:
                tally.failed.append('%s: %s' % (program, case.group(2)))
    trouble = program_trouble(status, planned, seen, bool(tally.failed), bool(tally.skipped))
    if trouble:
        tally.failed.append('%s: %s' % (program, trouble))
    return tally


def count_exit(program, output, status):
    """The same of a program that is one case, told by its exit status."""
    tally = Tally()
    if status == 0:
        tally.passed = 1
    elif status == SKIP_STATUS:
        reason = SKIPPED.search(output)
        tally.skipped.append((program, reason.group(1) if reason else 'no reason given'))
    elif status is None:
        tally.failed.append('%s: ran out of time' % program)
    elif status < 0:
        tally.failed.append('%s: died of signal %d' % (program, -status))
    else:
        tally.failed.append('%s: exit status %d' % (program, status))
    return tally


def program_trouble(status, planned, seen, has_failures, skipped):
    after = 'after %d of %s cases' % (seen, '?' if planned is None else planned)
    if status is None:
        return 'ran out of time ' + after
    if status < 0:
        return 'died of signal %d %s' % (-status, after)
    if planned is None or (planned == 0 and not skipped):
        return 'announced no cases (exit status %d)' % status
    if seen != planned:
        return 'ended %s (exit status %d)' % (after, status)
    if status and not has_failures:
        return 'ended with exit status %d although no case failed' % status
    return None
