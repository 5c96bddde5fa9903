"""The clean interpreter that every experiment is forked from. Started by `launcher`, one for each sandbox.

Runs with an empty environment and one descriptor, its control socket. Each message there asks for
a fork and brings two sockets: the child's own, and one for its fate, on which the zygote tells the child's pid
and later its end. When the other side of the fate socket closes, the child is killed; when the control
socket closes, the zygote ends and the kernel kills every child. It never reads what a child says.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import selectors
import signal
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from workers.sandbox import guest, jail, wire

CHANNEL = 3
"""The child's only descriptor beside the three standard ones, which lead nowhere."""


@dataclass
class Brood:
    """The zygote's children and the loop that looks after them."""

    control: socket.socket
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    living: set[int] = field(default_factory=set)

    def tend(self) -> None:
        """Fork, kill and reap until the control socket closes."""
        self.selector.register(self.control, selectors.EVENT_READ, self.fork)
        while True:
            for key, _ in self.selector.select():
                if self.selector.get_map().get(key.fd) == key:  # an earlier event may have closed it
                    key.data()

    def fork(self) -> None:
        request, descriptors, _, _ = socket.recv_fds(self.control, 8192, 2)
        if not request:
            os._exit(0)
        channel, fate = (socket.socket(fileno=number) for number in descriptors)
        zygote = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                enter(channel, request, zygote)
            finally:
                os._exit(70)  # never back into the zygote's loop
        channel.close()
        self.watch(pid, fate)

    def watch(self, pid: int, fate: socket.socket) -> None:
        self.living.add(pid)
        descriptor = os.pidfd_open(pid)
        self.selector.register(fate, selectors.EVENT_READ, lambda: self.kill(pid, fate))
        self.selector.register(descriptor, selectors.EVENT_READ, lambda: self.reap(pid, descriptor, fate))
        with contextlib.suppress(OSError):
            fate.send(wire.datagram(wire.Forked(pid)))

    def kill(self, pid: int, fate: socket.socket) -> None:
        """The host wants the child gone, or is gone itself. The reaping follows by itself."""
        self.selector.unregister(fate)
        os.kill(pid, signal.SIGKILL)

    def reap(self, pid: int, descriptor: int, fate: socket.socket) -> None:
        if fate.fileno() in self.selector.get_map():
            self.selector.unregister(fate)
        self.selector.unregister(descriptor)
        os.close(descriptor)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # before the pid is free again
        _, status, usage = os.wait4(pid, 0)
        self.living.discard(pid)
        self.sweep()
        with contextlib.suppress(OSError):
            fate.send(wire.datagram(wire.Ended(status, usage.ru_maxrss * 1024)))
        fate.close()

    def sweep(self) -> None:
        """Kill and reap what programs left behind: orphans come to the zygote, their subreaper."""
        while strays := _children() - self.living:
            for pid in strays:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _children() -> set[int]:
    try:
        return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return set()


def enter(channel: socket.socket, request: bytes, zygote: int) -> NoReturn:
    """Become the process of one experiment: keep one descriptor, restrict, hand over to the guest."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    channel = _only(channel)
    gc.enable()
    terms = wire.read_datagram(request, wire.Fork)
    os.chdir(terms.scratch)
    try:
        jail.restrict(terms, zygote)
    except Exception as error:  # noqa: BLE001 told to the host, which refuses to run programs
        guest.decline(channel, str(error))
    for name in [name for name in sys.modules if name.split(".")[0] == "workers"]:
        del sys.modules[name]
    guest.serve(channel)


def _only(channel: socket.socket) -> socket.socket:
    """Close everything else; standard input is empty, standard output and error lead nowhere."""
    number = os.dup(channel.detach())
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.dup2(number, CHANNEL, inheritable=False)
    os.closerange(CHANNEL + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return socket.socket(fileno=CHANNEL)


def main(control: int) -> None:
    """Load what programs commonly use, once, then tend the children."""
    os.environ.clear()
    guest.warm_up()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    jail.adopt_orphans()
    gc.collect()
    gc.freeze()
    brood = Brood(socket.socket(fileno=control))
    brood.control.send(b"ready")
    brood.tend()
