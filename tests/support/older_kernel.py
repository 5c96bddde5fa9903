"""Runs Python code as if the kernel were older or stricter: `python older_kernel.py LAYER CODE`.

A filter of system calls makes the kernel say what one without that layer would say, to this process and all it starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from workers.sandbox import kernel, seccomp

COLUMN = seccomp.ARCHITECTURES[platform.machine()].column
CALLS = {
    # layer: number of a call it needs, the argument to look at and its value, what the kernel answers
    "landlock": ((444, 444), None, errno.EOPNOTSUPP),
    "landlock unknown": ((444, 444), None, errno.ENOSYS),
    "seccomp": ((157, 167), (0, 22), errno.EINVAL),
    "no_new_privs": ((157, 167), (0, 38), errno.EINVAL),
    "rlimits": ((141, 140), None, errno.EACCES),
    "namespaces": ((272, 97), None, errno.EPERM),
}


def without(layer: str) -> None:
    """Have the kernel refuse one call from here on."""
    numbers, looked_at, answer = CALLS[layer]
    code = [(0x20, 0, 0, 0), (0x15, 0, 3 if looked_at else 1, numbers[COLUMN])]
    if looked_at:
        code += [(0x20, 0, 0, 16 + 8 * looked_at[0]), (0x15, 0, 1, looked_at[1])]
    code += [(0x06, 0, 0, seccomp.FAIL + answer), (0x06, 0, 0, seccomp.ALLOW)]
    packed = b"".join(struct.pack("=HBBI", *each) for each in code)
    if os.getuid():
        kernel.prctl("no_new_privs", 38, 1)
    kernel.prctl("a filter", 22, 2, ctypes.byref(seccomp._Filter(len(code), packed)))


if __name__ == "__main__":
    without(sys.argv[1])
    exec(sys.argv[2])
