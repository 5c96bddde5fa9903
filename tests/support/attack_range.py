"""Where attacks are run: every sandbox there is, a worker that has something to lose, and a look round afterwards.

An attack is a program. It reports what it managed with `attempt`: a line "name: won …" or "name: blocked …". Each line
must say blocked, and afterwards nothing may be different.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
from pathlib import Path

import pytest

from tests.support.sandbox_lab import Lab, children_of, descendants, folder_of, zygote_pid
from workers.lab.imaging import parse_image
from workers.protocols import Bounds
from workers.sandbox.host import ZygoteSandbox

SANDBOXES = {
    "every layer": ZygoteSandbox,
    "the oldest kernel's layers": lambda: ZygoteSandbox(least=True),
}
"""Every implementation of `protocols.Sandbox`, as it stands on a new kernel and as in an old one's container."""

REFUSALS = ("PermissionError 1", "PermissionError 13")

BOUNDS = Bounds(seconds=20, memory_bytes=256 << 20)
SOON = Bounds(seconds=0.5, memory_bytes=256 << 20)
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where scratch folders lie: removing a thousand of a program's folders from a disk takes seconds."""

TOOLS = """
import ctypes, errno, gc, io, inspect, os, platform, resource, signal, socket, struct, subprocess, sys, threading, time

def attempt(name, act, *arguments):
    try:
        got = act(*arguments)
    except BaseException as error:
        print(f"{name}: blocked by {type(error).__name__} {getattr(error, 'errno', '')}")
    else:
        print(f"{name}: won {got!r:.300}")

libc = ctypes.CDLL(None, use_errno=True)

def raw(number, *arguments):
    ctypes.set_errno(0)
    got = libc.syscall(ctypes.c_long(number), *arguments)
    if got < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return got
"""


class Range:
    """One sandbox under attack."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.lab = Lab()
        self.lab.calls["system.neuron"] = self.measure
        self.facts = {"system.worker": os.getpid()}

    def measure(self, image_list):
        """What a real system does with what it is given: it looks at the pixels."""
        images = [parse_image(image, "image_list") for image in image_list]
        return [float(image.getpixel((0, 0))[0]) for image in images], images

    def attack(self, program, bounds=BOUNDS, **options):
        """Run a program with `attempt` at hand; its result."""
        return self.sandbox.run(TOOLS + program, self.lab.calls, self.facts, bounds=bounds, **options)

    def must_fail(self, program, attempts=1, by=REFUSALS):
        """Run a program that attempts so many things; each must be refused, and by nothing but a wall."""
        result = self.attack(program)
        lines = result.output.splitlines()
        assert result.status == "ok", result.error
        assert len(lines) == attempts, result.output
        won = [line for line in lines if line.partition(": blocked by ")[2] not in by]
        assert won == [], won

    def condition(self):
        """What must be the same before and after: processes, files, descriptors."""
        return {
            "zygote": zygote_pid(self.sandbox),
            "children": children_of(self.sandbox),
            "processes": len(descendants(os.getpid())),
            "files": sorted(path.name for path in folder_of(self.sandbox).iterdir()),
            "descriptors": len(list(Path("/proc/self/fd").iterdir())),
            "priority": os.getpriority(os.PRIO_PROCESS, os.getpid()),
        }

    def condition_in_the_end(self):
        """The condition once it is as before, else after 20 s: one zygote may still reap while another runs.

        Fewer descriptors count as many as before: what earlier tests of this process left open goes when it is
        collected, and no experiment reaches it.
        """
        until = time.monotonic() + 20
        while (found := self._compare_condition()) != self.before and time.monotonic() < until:
            time.sleep(0.02)
        return found

    def _compare_condition(self):
        found = self.condition()
        return found | {"descriptors": max(found["descriptors"], self.before["descriptors"])}


def ranges():
    """A fixture for a module: one sandbox of each kind, for all its tests."""

    @pytest.fixture(scope="module", params=SANDBOXES)
    def sandbox(request):
        with pytest.MonkeyPatch.context() as patch, SANDBOXES[request.param]() as sandbox:
            patch.setattr(tempfile, "tempdir", IN_MEMORY)
            sandbox.run("pass", {}, {}, bounds=BOUNDS)
            patch.undo()
            yield sandbox

    return sandbox


def unharmed():
    """A fixture for every test of a module: nothing is different afterwards, and the next experiment runs."""

    @pytest.fixture
    def field(sandbox):
        field = Range(sandbox)
        gc.collect()
        field.before = field.condition()
        yield field
        assert field.attack("print('well')").output == "well\n"
        after = field.condition_in_the_end()
        assert after == field.before, f"before {field.before}, afterwards {after}"

    return field


def secret_in(folder: Path) -> Path:
    """A file that everybody may read, unless a sandbox keeps them."""
    folder.mkdir(exist_ok=True)
    path = folder / "secret.txt"
    path.write_text("hunter2")
    for each in (path, folder):
        each.chmod(0o777)
    return path
