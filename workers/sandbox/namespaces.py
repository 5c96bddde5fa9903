"""Put the zygote and its children into namespaces: no network, other process numbers, no shared memory with others.

An extra wall if the kernel lets an ordinary user build it, which Docker's default profile does not. Nothing relies on
it: `jail` closes the same doors again.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from workers.sandbox import kernel

_USER, _NETWORK, _PROCESSES, _SHARED_MEMORY = 0x10000000, 0x40000000, 0x20000000, 0x08000000
_PR_SET_PDEATHSIG = 1


def refusal() -> str:
    """Say why the kernel does not let this process have namespaces; empty if it does. Tried in a child."""
    reader, writer = os.pipe()
    # In a child, since namespaces cannot be left again.
    pid = os.fork()
    if pid == 0:
        try:
            _unshare()
        except OSError as error:
            os.write(writer, str(error).encode()[:1000])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        words = answer.read()
    os.waitpid(pid, 0)
    return words


def enter(control: int) -> bool:
    """Continue in a child in new namespaces, if the kernel allows it; the caller has then become that child.

    The original process stays behind, holding nothing, and ends as the child does.
    """
    if refusal():
        return False
    _unshare()
    # A process enters a process namespace only by birth, so the work continues in a child.
    pid = os.fork()
    if pid == 0:
        kernel.prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal.SIGKILL)
        return True
    os.close(control)
    os.waitpid(pid, 0)
    os._exit(0)


def _unshare() -> None:
    """Create user, network and ipc namespaces for this process, a process namespace for its children. Raises
    OSError.
    """
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(_USER | _NETWORK | _PROCESSES | _SHARED_MEMORY)
    # The kernel refuses a map of groups to an ordinary user until setgroups is denied.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
