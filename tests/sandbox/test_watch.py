"""What the zygote sees of a program that does not want to be seen: a real process, looked at from outside."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.sandbox import watch

CROWD = """
import ctypes, sys, threading, time
threading.stack_size(32768)
for _ in range(int(sys.argv[2])):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
ctypes.CDLL(None).prctl(15, bytes.fromhex(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
"""
ORDINARY = 65534
NAMES = [b"plain", b"\xff\xfe\xff", b"\x0bThreads:\t1", b"a\rThreads:\t1", b"a\x1cThreads:\t1", b"\nThreads:\t1"]


@contextlib.contextmanager
def crowd(name: bytes, threads: int) -> Iterator[int]:
    """A process of that name and so many threads beside its own; yields a pidfd."""
    words = [sys.executable, "-S", "-c", CROWD, name.hex(), str(threads)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        descriptor = os.pidfd_open(process.pid)
        try:
            yield descriptor
        finally:
            process.communicate()
            assert watch.find_excess(descriptor, "/nowhere") == ""  # gone: nothing is too much any more
            os.close(descriptor)


@pytest.mark.parametrize("name", NAMES)
def test_threads_are_counted_whatever_the_process_is_called(name: bytes, tmp_path: Path) -> None:
    with crowd(name, watch.THREADS) as descriptor:
        assert watch.find_excess(descriptor, str(tmp_path)) == f"started more than {watch.THREADS} threads"


def test_files_are_counted_whatever_the_process_is_called(tmp_path: Path) -> None:
    with crowd(b"\xff\xfe", 1) as descriptor:
        assert watch.find_excess(descriptor, str(tmp_path)) == ""
        for number in range(watch.SCRATCH_FILES + 1):
            (tmp_path / str(number)).touch()
        assert "files and folders" in watch.find_excess(descriptor, str(tmp_path))


def test_a_living_process_that_cannot_be_looked_at_has_too_much(tmp_path: Path) -> None:
    descriptor, me = os.pidfd_open(1), os.geteuid()
    try:
        if me == 0:
            tmp_path.chmod(0o755)
            os.seteuid(ORDINARY)
        assert watch.find_excess(descriptor, str(tmp_path)) == "hid how many threads and files it has"
    finally:
        if me == 0:
            os.seteuid(me)
        os.close(descriptor)


RELAY = """
import ctypes, os, platform, sys, threading

libc = ctypes.CDLL(None)
if os.geteuid() == 0:
    os.setuid(int(sys.argv[1]))
    libc.prctl(4, 1)  # may be looked at again

def run() -> None:
    threading.Thread(target=run).start()

threading.Thread(target=run).start()
print("ready", flush=True)
libc.syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def test_a_thread_that_ends_while_it_is_looked_at_hides_nothing() -> None:
    """The first thread is gone, and each of the others lives no longer than it takes to start the next; on a busy
    machine some are late to end."""
    me = os.geteuid()
    words = [sys.executable, "-S", "-c", RELAY, str(ORDINARY)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        descriptor = os.pidfd_open(process.pid)
        try:
            if me == 0:
                os.seteuid(ORDINARY)
            found = {watch.find_excess(descriptor, "/nowhere") for _ in range(2000)}
            assert found <= {"", f"started more than {watch.THREADS} threads"}
        finally:
            if me == 0:
                os.seteuid(me)
            process.kill()
            os.close(descriptor)
