"""What a child gives up before the first line of its program, while it has a single thread.

Now: new privileges, memory beyond a bound, CPU time beyond a bound, large files, many descriptors, core
files, and outliving the zygote. Not yet: the file system, the network, other processes. Called by `zygote`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from pathlib import Path

from workers.sandbox.wire import Fork

FILE_BYTES = 64 << 20
DESCRIPTORS = 64
RESERVE_BYTES = 64 << 20
"""Memory kept back for telling that memory ran out."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


def restrict(terms: Fork, zygote: int) -> None:
    """Apply every restriction. Raises OSError naming the one that the kernel refused."""
    _prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != zygote:  # it died before the line above: nobody would kill this process
        os._exit(0)
    _prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)
    with contextlib.suppress(OSError):
        _offer_to_the_oom_killer()
    space = address_space() + terms.memory_bytes
    for kind, soft, hard in (
        (resource.RLIMIT_AS, space, space + RESERVE_BYTES),
        (resource.RLIMIT_CPU, terms.cpu_seconds, terms.cpu_seconds + 1),
        (resource.RLIMIT_FSIZE, FILE_BYTES, FILE_BYTES),
        (resource.RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        resource.setrlimit(kind, (soft, hard))


def release_reserve() -> None:
    """Give the reserve to a program that has run out of memory, so that its end can be told."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def adopt_orphans() -> None:
    """Make orphans of a program children of the caller, the zygote, which kills them."""
    _prctl("PR_SET_CHILD_SUBREAPER", _PR_SET_CHILD_SUBREAPER, 1)


def address_space() -> int:
    """Bytes of address space that this process uses now."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _prctl(name: str, option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"the kernel refuses {name}")


def _offer_to_the_oom_killer() -> None:
    """Where memory of the whole machine runs out, let the kernel take this process, not the worker."""
    with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 one write, no newline games
        file.write("1000")
