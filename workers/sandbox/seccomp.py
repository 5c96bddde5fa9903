"""Filter system calls: an allow-list, assembled for the kernel's small virtual machine. Called by `jail`."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import socket
import struct
import termios
from collections.abc import Iterator
from dataclasses import dataclass

from workers.sandbox import kernel, syscalls

ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
"""The filter's answers; FAIL has an errno added to it."""

_LOAD, _AND, _RETURN, _IF_EQUAL, _IF_AT_LEAST = 0x20, 0x54, 0x06, 0x15, 0x35
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

Instruction = tuple[int, int, int, int]
"""Code, jumps if true and if false, constant."""


@dataclass(frozen=True)
class ArgumentCheck:
    """A condition: an argument, masked, must be one of the values. Compares the lower 32 bits."""

    argument: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True)
class Architecture:
    """A convention of system calls; `column` is its position in `syscalls.Numbers`."""

    code: int
    column: int


ARCHITECTURES = {"x86_64": Architecture(0xC000003E, 0), "aarch64": Architecture(0xC00000B7, 1)}
"""By the kernel's name of the machine."""

_THREAD, _NEW_NAMESPACES = 0x00010400, 0x7E020000
"""A thread shares its files with the others, so that `watch` finds them all in one place."""
_UNNAMED_FILE = os.O_TMPFILE & ~os.O_DIRECTORY
_GET_NAME = 16
_SOCKET_KINDS = 0xF


def _argument_checks(pid: int) -> dict[str, tuple[ArgumentCheck, ...]]:
    """Return for each of `syscalls.SOMETIMES` the conditions that must all hold in the process `pid`."""
    # Emptying a file needs the right to write, which Landlock does not check before its third version.
    opening = (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_TRUNC | os.O_WRONLY, os.O_TRUNC | os.O_RDWR)
    described = (fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC, fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL, fcntl.F_SETFL)
    devices = (termios.TCGETS, termios.TIOCGWINSZ, termios.FIONREAD, termios.FIONBIO, termios.FIOCLEX, termios.FIONCLEX)
    return {
        # Threads are allowed, processes and namespaces are not.
        "clone": (ArgumentCheck(0, (_THREAD,), mask=_THREAD | _NEW_NAMESPACES),),
        "open": (ArgumentCheck(1, opening, mask=os.O_ACCMODE | os.O_TRUNC | _UNNAMED_FILE),),
        "openat": (ArgumentCheck(2, opening, mask=os.O_ACCMODE | os.O_TRUNC | _UNNAMED_FILE),),
        "fcntl": (ArgumentCheck(1, described),),
        "ioctl": (ArgumentCheck(1, devices),),
        "prctl": (ArgumentCheck(0, (_GET_NAME,)),),
        # A program may read and lower its own limits, not those of another process.
        "prlimit64": (ArgumentCheck(0, (0, pid)),),
        "kill": (ArgumentCheck(0, (pid,)),),
        "tgkill": (ArgumentCheck(0, (pid,)),),
        # A pair of streams reaches only itself; datagrams could be sent to any socket.
        "socketpair": (
            ArgumentCheck(0, (socket.AF_UNIX,)),
            ArgumentCheck(1, (socket.SOCK_STREAM,), mask=_SOCKET_KINDS),
        ),
    }


def assemble(architecture: Architecture, pid: int) -> list[Instruction]:
    """Assemble the filter for the process `pid`."""
    known = _argument_checks(pid)
    code: list[Instruction] = [
        # The same number means another call in another convention, so those of 32 bits and x32 end the program.
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, architecture.code),
        (_RETURN, 0, 0, KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_IF_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, KILL),
    ]
    for name, numbers in (syscalls.SOMETIMES | syscalls.ALWAYS | syscalls.UNKNOWN).items():
        number = numbers[architecture.column]
        if number is not None:
            answer = FAIL + errno.ENOSYS if name in syscalls.UNKNOWN else ALLOW
            body = [*_checks(known.get(name, ())), (_RETURN, 0, 0, answer)]
            code += [(_IF_EQUAL, 0, len(body), number), *body]
    # EPERM raises an exception in the program, which lives on and can tell the agent.
    return [*code, (_RETURN, 0, 0, FAIL + errno.EPERM)]


def _checks(conditions: tuple[ArgumentCheck, ...]) -> Iterator[Instruction]:
    for only in conditions:
        yield (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * only.argument)
        yield (_AND, 0, 0, only.mask)
        for left, value in zip(range(len(only.values), 0, -1), only.values, strict=True):
            # The number of instructions to skip: the other values, and the refusal after them.
            yield (_IF_EQUAL, left, 0, value)
        yield (_RETURN, 0, 0, FAIL + errno.EPERM)


class _Filter(ctypes.Structure):
    """A program in the kernel's format: the number of instructions, and where they are."""

    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def restrict() -> None:
    """Filter every later call of this process, for good. Raises OSError; NotImplementedError on other machines."""
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise NotImplementedError(f"there is no table of system calls for {machine}")
    code = assemble(ARCHITECTURES[machine], os.getpid())
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
    kernel.prctl("a seccomp filter", _PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(_Filter(len(code), packed)))
