"""Start zygotes, fork a child for each experiment, and see every child to its end. Used by `host`.

Knows nothing of programs or of messages between host and guest.
"""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from workers.errors import SandboxBroke
from workers.sandbox import wire
from workers.sandbox.jail import ChildLimits
from workers.sandbox.scratch import remove_folder

_ROOT = Path(__file__).resolve().parents[2]
_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",  # the same order of sets each time
    "OPENBLAS_NUM_THREADS": "1",  # no thread that a fork would lose
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",  # each thread would otherwise reserve 128 MiB of the limited address space
}
"""The zygote's whole environment."""
# Our folder leaves the path once `main` is loaded, so that programs cannot import our code.
_BOOT = """
import sys
sys.path.insert(0, {root!r})
from workers.sandbox import namespaces
namespaced = not {least} and namespaces.enter({fd})
from workers.sandbox.zygote import main
del sys.path[0]
main({fd}, namespaced)
"""
_START_SECONDS = 60.0
_FORK_SECONDS = 30.0
_BUFFER_BYTES = 1 << 20
_Report = TypeVar("_Report", wire.ChildStarted, wire.ChildEnded)


@dataclass
class ChildProcess:
    """The process of one experiment."""

    channel: socket.socket
    """Leads to the guest; hostile. Non-blocking."""
    status: socket.socket
    """Leads to the zygote; readable once the child is gone."""
    scratch: Path
    pid: int = 0
    ended: wire.ChildEnded | None = None

    def wait(self, seconds: float) -> wire.ChildEnded | None:
        """Return how the child ended by itself; None if it still lives after this time. Raises SandboxBroke."""
        if self.ended is None and select.select([self.status], [], [], seconds)[0]:
            self.ended = _read_report(self.status, wire.ChildEnded)
        return self.ended

    def end(self) -> wire.ChildEnded:
        """Kill the child unless it is gone already; return once it is reaped. Raises SandboxBroke."""
        if self.ended is None:
            with contextlib.suppress(OSError):
                self.status.shutdown(socket.SHUT_WR)  # tells the zygote to kill
            self.ended = _read_report(self.status, wire.ChildEnded)
        return self.ended


@dataclass
class Zygote:
    """A running zygote: the process, its control socket, and the folder with its children's scratch folders."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    folder: Path

    def stop(self) -> None:
        """End it and with it every child; remove the folder."""
        self.control.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        remove_folder(self.folder)


@dataclass
class Launcher:
    """Owns the zygotes: as many as there ever were simultaneous experiments. Safe to share between threads.

    `override` and `least` are those of `jail.ChildLimits`.
    """

    override: bool = False
    least: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _zygotes: list[Zygote] = field(default_factory=list)
    _idle: list[Zygote] = field(default_factory=list)
    _closed: bool = False

    @contextlib.contextmanager
    def child(self, memory_bytes: int, cpu_seconds: int) -> Iterator[ChildProcess]:
        """Start a fresh child with an empty scratch folder; both are gone afterwards. Raises SandboxBroke."""
        try:
            zygote, child = self._fork_child(memory_bytes, cpu_seconds)
        except (OSError, SandboxBroke):  # the zygote died since its last fork: one more attempt with a fresh zygote
            zygote, child = self._fork_child(memory_bytes, cpu_seconds)
        # Cleans up after an interrupt too: the child must be dead before its folder is removed.
        try:
            yield child
        finally:
            try:
                with child.channel, child.status:
                    try:
                        child.end()
                    finally:
                        remove_folder(child.scratch)
            # A zygote that did not report the end may still have the child, so it serves no other experiment.
            except BaseException:
                self._discard(zygote)
                raise
            # Checked under the lock: `close` may have discarded the zygote meanwhile.
            with self._lock:
                if zygote in self._zygotes:
                    self._idle.append(zygote)

    def close(self) -> None:
        """Stop every zygote and with it its child; nothing is left behind."""
        with self._lock:
            self._closed = True
            zygotes = list(self._zygotes)
        for zygote in zygotes:
            self._discard(zygote)

    def _fork_child(self, memory_bytes: int, cpu_seconds: int) -> tuple[Zygote, ChildProcess]:
        """Return a zygote that serves no other experiment, and its child. Raises OSError or SandboxBroke."""
        # A zygote each for simultaneous experiments, so that one that crashes its zygote ends only itself.
        zygote = self._take() or self._add(_start(self.least))
        try:
            scratch = Path(tempfile.mkdtemp(dir=zygote.folder))
            limits = ChildLimits(str(scratch), memory_bytes, cpu_seconds, self.override, self.least)
            return zygote, _fork(zygote, limits)
        except BaseException:
            self._discard(zygote)
            raise

    def _take(self) -> Zygote | None:
        """Return an idle living zygote, if there is one."""
        while True:
            with self._lock:
                if self._closed:
                    raise SandboxBroke("this sandbox is closed; make a new one")
                # The one that was used last: its memory is still warm.
                zygote = self._idle.pop() if self._idle else None
            if zygote is None or zygote.process.poll() is None:
                return zygote
            self._discard(zygote)

    def _add(self, zygote: Zygote) -> Zygote:
        with self._lock:
            self._zygotes.append(zygote)
            closed = self._closed
        if closed:  # while it was starting
            self._discard(zygote)
        return zygote

    def _discard(self, zygote: Zygote) -> None:
        with self._lock:
            kept = zygote in self._zygotes
            self._zygotes = [each for each in self._zygotes if each is not zygote]
            self._idle = [each for each in self._idle if each is not zygote]
        # Outside the lock: it waits up to 5 s for the process to end.
        if kept:
            zygote.stop()


def _start(least: bool) -> Zygote:
    """Start a zygote that has loaded everything. Raises SandboxBroke with its standard error."""
    folder = Path(tempfile.mkdtemp(prefix="maia-sandbox-"))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    log = folder / "zygote.log"
    boot = _BOOT.format(root=str(_ROOT), fd=theirs.fileno(), least=least)
    with theirs, log.open("wb") as errors:
        # -P and an empty environment: neither the current folder nor PYTHONPATH can add modules to the zygote.
        process = subprocess.Popen(  # noqa: S603 our own interpreter and our own words
            [sys.executable, "-s", "-P", "-B", "-X", "utf8", "-c", boot],
            env=_ENVIRONMENT,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=[theirs.fileno()],
            # In a session apart, so that an interrupt from the terminal reaches the worker alone, which then cleans up.
            start_new_session=True,
        )
    zygote = Zygote(process, ours, folder)
    ours.settimeout(_START_SECONDS)
    with contextlib.suppress(OSError):
        if ours.recv(16) == b"ready":
            return zygote
    said = log.read_text(errors="replace")[-2000:].strip()
    zygote.stop()
    raise SandboxBroke(f"the sandbox's zygote does not start: {said}")


def _fork(zygote: Zygote, limits: ChildLimits) -> ChildProcess:
    """Ask for a child and wait until it runs. Raises OSError or SandboxBroke if the zygote is dead."""
    channel, inside = socket.socketpair()
    status, reports = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # The program is one large frame; a small buffer would need many turns between worker and child.
    for end in (channel, inside):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    status.settimeout(_FORK_SECONDS)
    channel.setblocking(False)
    try:
        # Our copies of the child's ends are closed, so that its death reads as the end of the channel.
        with inside, reports:
            request = msgspec.msgpack.encode(wire.ForkRequest(limits))
            socket.send_fds(zygote.control, [request], [inside.fileno(), reports.fileno()])
        return ChildProcess(channel, status, Path(limits.scratch), _read_report(status, wire.ChildStarted).pid)
    except BaseException:
        channel.close()
        status.close()
        raise


def _read_report(status: socket.socket, kind: type[_Report]) -> _Report:
    """Read the zygote's report on a child. Raises SandboxBroke if it is dead or silent."""
    try:
        data = status.recv(256)
    except OSError as error:
        raise SandboxBroke(f"the sandbox's zygote does not answer: {error}") from error
    if not data:
        raise SandboxBroke("the sandbox's zygote died; the next experiment starts another")
    return msgspec.msgpack.decode(data, type=kind)
