"""Call functions of the Linux kernel that Python does not offer. Used by the layers of the sandbox; knows no policy.

Numbers of calls above 423 are the same on every architecture.
"""

from __future__ import annotations

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
_CAPABILITIES_3 = 0x20080522


def check(result: int, what: str) -> int:
    """Return the result of a call of the C library. Raises OSError, naming `what`, if it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the kernel refuses {what}: {os.strerror(number)}")
    return result


def syscall(what: str, number: int, *arguments: object) -> int:
    """Make a call by its number; integers must be ctypes objects if they may exceed an int. Raises OSError."""
    return check(_LIBC.syscall(ctypes.c_long(number), *arguments), what)


def prctl(what: str, option: int, *arguments: object) -> int:
    """Call prctl(2), with zeros for missing arguments. Raises OSError."""
    given = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    return check(_LIBC.prctl(option, *given, *[ctypes.c_ulong(0)] * (4 - len(given))), what)


def unshare(flags: int) -> None:
    """Call unshare(2). Raises OSError."""
    check(_LIBC.unshare(flags), "new namespaces")


def drop_capabilities() -> None:
    """Give up every privilege of root, for any user. Raises OSError."""
    # Version 3 of the header has two sets of 32 capabilities; zeros drop all of them.
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    check(_LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")
