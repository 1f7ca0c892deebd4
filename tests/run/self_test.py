#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The counting counted: every way a test program can end, and what must be made of it."""
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run
import tap

CASES = []


def case(function):
    CASES.append(function)
    return function


def expect(tally, passed, failed, skipped):
    got = (tally.passed, tally.failed, tally.skipped)
    assert got == (passed, failed, skipped), got


@case
def passes_and_failures_are_cases_not_programs():
    expect(tap.count('p', '1..3\nok 1 - a\nnot ok 2 - b\n# why\nok 3 - c\n', 1), 2, ['p: b'], [])


@case
def cmocka_skips_are_neither():
    expect(tap.count('p', '1..2\nok 1 - a\n# skip: no ring\nnot ok 2 # SKIP b\n', 0),
           1, [], [('p: b', 'no ring')])


@case
def plain_tap_skips_count_too():
    expect(tap.count('p', '1..1\nok 1 - b # SKIP\n', 0), 0, [], [('p: b', 'no reason given')])


@case
def a_reason_serves_one_skip():
    expect(tap.count('p', '1..2\n# skip: x\nnot ok 1 # SKIP a\nnot ok 2 # SKIP b\n', 0),
           0, [], [('p: a', 'x'), ('p: b', 'no reason given')])


@case
def a_crash_is_one_failure_more():
    expect(tap.count('p', '1..3\nok 1 - a\n', -6), 1, ['p: died of signal 6 after 1 of 3 cases'],
           [])
    expect(tap.count('p', '', -11), 0, ['p: died of signal 11 after 0 of ? cases'], [])


@case
def running_out_of_time_is_a_failure():
    expect(tap.count('p', '1..2\nok 1 - a\n', None), 1,
           ['p: ran out of time after 1 of 2 cases'], [])


@case
def missing_cases_are_a_failure():
    expect(tap.count('p', '1..2\nok 1 - a\n', 0), 1,
           ['p: ended after 1 of 2 cases (exit status 0)'], [])


@case
def silence_is_a_failure():
    expect(tap.count('p', '', 0), 0, ['p: announced no cases (exit status 0)'], [])


@case
def a_program_may_skip_as_a_whole():
    expect(tap.count('p', '1..0 # SKIP needs a ring\n', 0), 0, [], [('p', 'needs a ring')])
    expect(tap.count('p', '1..0\n', 0), 0, ['p: announced no cases (exit status 0)'], [])


@case
def a_bad_exit_alone_is_a_failure():
    expect(tap.count('p', '1..1\nok 1 - a\n', 66), 1,
           ['p: ended with exit status 66 although no case failed'], [])


@case
def other_output_does_not_count():
    expect(tap.count('p', '1..1\n# group\nokay then\n  not ok\nnotice\nok 1 - a\n', 0), 1, [], [])


@case
def an_exit_status_is_one_case():
    expect(tap.count_exit('p', '1..2\nok 1 - a\nok 2 - b\n', 0), 1, [], [])
    expect(tap.count_exit('p', '', 1), 0, ['p: exit status 1'], [])
    expect(tap.count_exit('p', '', -6), 0, ['p: died of signal 6'], [])
    expect(tap.count_exit('p', '', None), 0, ['p: ran out of time'], [])


@case
def an_exit_status_skips_by_name():
    expect(tap.count_exit('p', 'x\nskipped: no emulator\n', 77), 0, [], [('p', 'no emulator')])
    expect(tap.count_exit('p', '', 77), 0, [], [('p', 'no reason given')])


@case
def tallies_add_up():
    total = tap.Tally()
    total.add(tap.count('p', '1..1\nok 1 - a\n', 0))
    total.add(tap.count('q', '1..2\nnot ok 1 - a\nnot ok 2 # SKIP b\n', 1))
    assert total.summary() == '1 passed, 1 failed, 1 skipped', total.summary()


def shell(command, timeout=None):
    return run.run(['sh', '-c', command], run.environment(), timeout)


@case
def both_streams_are_kept():
    assert shell('echo a; echo b >&2; exit 3') == (3, 'a\nb\n')


@case
def a_command_runs_where_it_should():
    assert run.run(['pwd'], run.environment(), None, '/') == (0, '/\n')


@case
def a_signal_is_told_from_an_exit_status():
    assert shell('kill -SEGV $$')[0] == -11


def state(pid):
    try:
        with open('/proc/%d/stat' % pid) as f:
            return f.read().rpartition(')')[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return 'X'


@case
def what_runs_too_long_is_killed_with_its_children():
    status, output = shell('sleep 1000 & echo $!; wait', 0.5)
    assert status is None
    # killed is not yet gone: let it go in its own time, and stay as a zombie if nobody reaps
    for _ in range(200):
        if state(int(output)) in 'ZX':
            return
        time.sleep(0.05)
    assert False, state(int(output))


def main():
    print('1..%d' % len(CASES))
    bad = 0
    for number, test in enumerate(CASES, 1):
        try:
            test()
            print('ok %d - %s' % (number, test.__name__))
        except AssertionError as why:
            bad += 1
            print('not ok %d - %s' % (number, test.__name__))
            print('# %s' % why)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
