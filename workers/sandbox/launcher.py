"""Starts the zygote, has it fork a child for each experiment, and sees every child to its end. Used by `host`.

It knows nothing of programs or messages between host and guest.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from workers.errors import SandboxBroke
from workers.sandbox import wire

_ROOT = Path(__file__).resolve().parents[2]
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""All that the zygote gets: the same order of sets each time, and no thread that a fork would lose."""
_BOOT = "import sys; sys.path.insert(0, {root!r}); from workers.sandbox.zygote import main; del sys.path[0]; main({fd})"
_START_SECONDS = 60.0
_FORK_SECONDS = 30.0
_BUFFER_BYTES = 1 << 20
M = TypeVar("M", wire.Forked, wire.Ended)


@dataclass
class Child:
    """The process of one experiment."""

    channel: socket.socket
    """Leads to the guest; hostile. Non-blocking."""
    fate: socket.socket
    """Leads to the zygote; readable once the child is gone."""
    scratch: Path
    pid: int = 0
    ended: wire.Ended | None = None

    def wait(self, seconds: float) -> wire.Ended | None:
        """How the child ended by itself, None if it still lives after so long. Raises SandboxBroke."""
        if self.ended is None and select.select([self.fate], [], [], seconds)[0]:
            self.ended = _told(self.fate, wire.Ended)
        return self.ended

    def end(self) -> wire.Ended:
        """Kill the child unless it is gone already; return once it is reaped. Raises SandboxBroke."""
        if self.ended is None:
            with contextlib.suppress(OSError):
                self.fate.shutdown(socket.SHUT_WR)  # the zygote takes this as the order to kill
            self.ended = _told(self.fate, wire.Ended)
        return self.ended


@dataclass
class Zygote:
    """A running zygote: the process and its control socket."""

    process: subprocess.Popen[bytes]
    control: socket.socket

    def stop(self) -> None:
        self.control.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Launcher:
    """Owns one zygote and the folder with the children's scratch folders. Safe to share between threads."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _zygote: Zygote | None = None
    _folder: Path | None = None
    _closed: bool = False

    @contextlib.contextmanager
    def child(self, memory_bytes: int, cpu_seconds: int) -> Iterator[Child]:
        """A fresh child with an empty scratch folder; both are gone afterwards. Raises SandboxBroke."""
        zygote, folder = self._running()
        scratch = Path(tempfile.mkdtemp(dir=folder))
        terms = wire.datagram(wire.Fork(str(scratch), memory_bytes, cpu_seconds))
        child = None
        try:
            try:
                child = _fork(zygote, terms, scratch)
            except (OSError, SandboxBroke):  # it died since its last fork: one fresh zygote, one more attempt
                self._discard(zygote)
                child = _fork(self._running()[0], terms, scratch)
            yield child
        finally:
            try:
                if child is not None:
                    _bury(child)
            finally:
                _remove(scratch)

    def close(self) -> None:
        """Stop the zygote and with it every child; remove the folder."""
        with self._lock:
            self._closed = True
            zygote, self._zygote = self._zygote, None
            folder, self._folder = self._folder, None
        if zygote is not None:
            zygote.stop()
        if folder is not None:
            _remove(folder)

    def _running(self) -> tuple[Zygote, Path]:
        with self._lock:
            if self._closed:
                raise SandboxBroke("this sandbox is closed; make a new one")
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="maia-sandbox-"))
            if self._zygote is None or self._zygote.process.poll() is not None:
                if self._zygote is not None:
                    self._zygote.stop()
                self._zygote = _start(self._folder)
            return self._zygote, self._folder

    def _discard(self, zygote: Zygote) -> None:
        with self._lock:
            if self._zygote is zygote:
                self._zygote = None
                zygote.stop()


def _start(folder: Path) -> Zygote:
    """A zygote that has loaded everything. Raises SandboxBroke with what it said on its standard error."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    log = folder / "zygote.log"
    boot = _BOOT.format(root=str(_ROOT), fd=theirs.fileno())
    with theirs, log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603 our own interpreter and our own words
            [sys.executable, "-s", "-P", "-B", "-X", "utf8", "-c", boot],
            env=_ENVIRONMENT,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    zygote = Zygote(process, ours)
    ours.settimeout(_START_SECONDS)
    with contextlib.suppress(OSError):
        if ours.recv(16) == b"ready":
            return zygote
    zygote.stop()
    raise SandboxBroke(f"the sandbox's zygote does not start: {log.read_text(errors='replace')[-2000:].strip()}")


def _fork(zygote: Zygote, terms: bytes, scratch: Path) -> Child:
    """Ask for a child and wait until it runs. Raises OSError or SandboxBroke if the zygote is dead."""
    channel, inside = socket.socketpair()
    fate, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (channel, inside):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    fate.settimeout(_FORK_SECONDS)
    channel.setblocking(False)
    try:
        with inside, told:
            socket.send_fds(zygote.control, [terms], [inside.fileno(), told.fileno()])
        return Child(channel, fate, scratch, _told(fate, wire.Forked).pid)
    except BaseException:
        channel.close()
        fate.close()
        raise


def _told(fate: socket.socket, kind: type[M]) -> M:
    """What the zygote says of a child. Raises SandboxBroke if it is dead or silent."""
    try:
        data = fate.recv(256)
    except OSError as error:
        raise SandboxBroke(f"the sandbox's zygote does not answer: {error}") from error
    if not data:
        raise SandboxBroke("the sandbox's zygote died; the next experiment starts another")
    return wire.read_datagram(data, kind)


def _bury(child: Child) -> None:
    """See the child to its end and close both sockets."""
    try:
        child.end()
    finally:
        child.channel.close()
        child.fate.close()


def _remove(folder: Path) -> None:
    """Remove a folder, also where a program took its own rights away from what it made."""
    for parent, names, _ in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
