"""The filter of system calls, run on a small model of the kernel's machine, for both architectures."""

import errno
import fcntl
import os
import signal
import termios

import pytest

from workers.sandbox import syscalls
from workers.sandbox.seccomp import ALLOW, ARCHITECTURES, FAIL, KILL, assemble

PID = 4321
THREAD = 0x3D0F00
"""What the C library asks for when it starts a thread."""


def answer(machine, number, *arguments, code=None):
    """What the filter says to a call."""
    architecture = ARCHITECTURES[machine]
    words = {0: number, 4: architecture.code if code is None else code}
    words |= {16 + 8 * place: value & 0xFFFFFFFF for place, value in enumerate(arguments)}
    program, at, held = assemble(architecture, PID), 0, 0
    while True:
        operation, if_true, if_false, constant = program[at]
        at += 1
        if operation == 0x06:
            return constant
        if operation == 0x20:
            held = words.get(constant, 0)
        elif operation == 0x54:
            held &= constant
        else:
            holds = held == constant if operation == 0x15 else held >= constant
            at += if_true if holds else if_false


def named(machine, name, *arguments):
    number = (syscalls.ALWAYS | syscalls.SOMETIMES | syscalls.UNKNOWN)[name][ARCHITECTURES[machine].column]
    return answer(machine, number, *arguments)


@pytest.fixture(params=ARCHITECTURES)
def machine(request):
    return request.param


def test_it_allows_what_is_on_the_list_and_nothing_else(machine):
    column = ARCHITECTURES[machine].column
    always = {numbers[column] for numbers in syscalls.ALWAYS.values()}
    sometimes = {numbers[column] for numbers in (syscalls.SOMETIMES | syscalls.UNKNOWN).values()}
    for number in set(range(600)) - sometimes:
        assert answer(machine, number) == (ALLOW if number in always else FAIL + errno.EPERM), number


def test_no_number_stands_for_two_calls(machine):
    column = ARCHITECTURES[machine].column
    tables = (syscalls.ALWAYS, syscalls.SOMETIMES, syscalls.UNKNOWN)
    numbers = [each[column] for table in tables for each in table.values() if each[column] is not None]
    assert len(numbers) == len(set(numbers))
    assert len(numbers) > 90


def test_it_kills_for_a_call_in_another_convention(machine):
    assert answer(machine, 0, code=0x40000003) == KILL
    assert answer(machine, 0x40000000 + 39) == KILL


def test_it_lets_threads_start_and_no_process(machine):
    assert named(machine, "clone", THREAD) == ALLOW
    for flags in (
        signal.SIGCHLD,
        0x4111,
        THREAD & ~0x400,
        THREAD | 0x10000000,
        THREAD | 0x40000000,
        THREAD | 0x00020000,
    ):
        assert named(machine, "clone", flags) == FAIL + errno.EPERM
    assert named(machine, "clone3") == FAIL + errno.ENOSYS


def test_it_lets_a_program_signal_itself_alone(machine):
    for name in ("kill", "tgkill"):
        assert named(machine, name, PID, PID) == ALLOW
        for other in (0, 1, -1, -PID, PID + 1):
            assert named(machine, name, other, 9) == FAIL + errno.EPERM


def test_it_lets_a_program_ask_for_its_own_limits(machine):
    assert named(machine, "prlimit64", 0) == named(machine, "prlimit64", PID) == ALLOW
    assert named(machine, "prlimit64", PID - 1) == FAIL + errno.EPERM


@pytest.mark.parametrize(
    ("flags", "allowed"),
    [
        (os.O_RDONLY | os.O_CLOEXEC, True),
        (os.O_WRONLY | os.O_CREAT | os.O_TRUNC, True),
        (os.O_RDWR | os.O_CREAT | os.O_EXCL, True),
        (os.O_RDONLY | os.O_DIRECTORY, True),
        (os.O_RDONLY | os.O_TRUNC, False),
        (os.O_ACCMODE, False),
        (os.O_ACCMODE | os.O_TRUNC, False),
        (os.O_TMPFILE | os.O_RDWR, False),
    ],
)
def test_it_lets_files_be_opened_in_ways_that_landlock_judges(machine, flags, allowed):
    assert named(machine, "openat", -100, 1234, flags) == (ALLOW if allowed else FAIL + errno.EPERM)


def test_it_lets_descriptors_be_described_and_owned_by_nobody(machine):
    assert named(machine, "fcntl", 3, fcntl.F_GETFL) == named(machine, "ioctl", 1, termios.TCGETS) == ALLOW
    for command in (fcntl.F_SETOWN, fcntl.F_SETSIG, fcntl.F_SETLEASE, fcntl.F_NOTIFY, fcntl.F_SETLK):
        assert named(machine, "fcntl", 3, command) == FAIL + errno.EPERM
    for request in (termios.TIOCSTI, termios.FIOASYNC, 0x8901, termios.TIOCSCTTY):
        assert named(machine, "ioctl", 3, request) == FAIL + errno.EPERM


def test_it_lets_a_pair_of_streams_be_made_and_no_other(machine):
    assert named(machine, "socketpair", 1, 1 | 0o2000000) == ALLOW
    for family, kind in ((1, 2), (1, 5), (2, 1), (16, 1)):
        assert named(machine, "socketpair", family, kind) == FAIL + errno.EPERM


def test_it_lets_a_thread_read_its_name_and_change_nothing(machine):
    assert named(machine, "prctl", 16) == ALLOW
    for option in (1, 4, 15, 8, 22, 24, 36, 38, 0x53564D41):
        assert named(machine, "prctl", option) == FAIL + errno.EPERM
