"""The clean interpreter that experiments are forked from. Started by `launcher`, one for each simultaneous experiment.

It runs with one descriptor, its control socket. Each message there asks for a fork and brings two sockets: the child's
channel, and one for its status, on which the zygote reports the child's pid and later its end. When the other side of
the status socket closes, the child is killed; when the control socket closes, the zygote removes its folder and ends,
and the kernel kills every child. It never reads messages of a child.
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

import msgspec

from workers.sandbox import guest, jail, proxies, watch, wire
from workers.sandbox.scratch import remove_folder

CHANNEL = 3
"""The child's only descriptor besides the three standard ones, which lead nowhere."""


@dataclass
class _LivingChild:
    """One living child."""

    pid: int
    descriptor: int
    """A pidfd: readable once the child is gone."""
    status: socket.socket
    scratch: str
    excess: str = ""


@dataclass
class ChildSupervisor:
    """The zygote's children and the loop that watches them."""

    control: socket.socket
    namespaced: bool
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    living: dict[int, _LivingChild] = field(default_factory=dict)

    def run(self) -> None:
        """Fork, watch, kill and reap until the control socket closes."""
        self.selector.register(self.control, selectors.EVENT_READ, self.fork)
        while True:
            # While there are children it wakes at intervals, to check what the kernel does not bound.
            for key, _ in self.selector.select(watch.LOOK_SECONDS if self.living else None):
                if self.selector.get_map().get(key.fd) == key:  # an earlier event may have closed it
                    key.data()
            for child in self.living.values():
                # End a child that has too much; `watch` says of what
                if not child.excess and (excess := watch.find_excess(child.descriptor, child.scratch)):
                    child.excess = excess
                    os.kill(child.pid, signal.SIGKILL)

    def fork(self) -> None:
        request, descriptors, _, _ = socket.recv_fds(self.control, 8192, 2)
        # Nothing to read: the worker has closed the control socket, or is dead.
        if not request:
            self.end()
        channel, status = (socket.socket(fileno=number) for number in descriptors)
        limits = msgspec.msgpack.decode(request, type=wire.ForkRequest).limits
        zygote = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                _become_child(channel, limits, zygote, self.namespaced)
            finally:
                os._exit(70)  # never back into the zygote's loop
        channel.close()
        child = self.living[pid] = _LivingChild(pid, os.pidfd_open(pid), status, limits.scratch)
        self.selector.register(child.status, selectors.EVENT_READ, lambda: self.kill(child))
        self.selector.register(child.descriptor, selectors.EVENT_READ, lambda: self.reap(child))
        # The host may be gone already; then the status socket has an event, and the child is killed.
        with contextlib.suppress(OSError):
            status.send(msgspec.msgpack.encode(wire.ChildStarted(pid)))

    def kill(self, child: _LivingChild) -> None:
        """Kill the child: the host wants that, or is gone itself. The loop reaps it later."""
        self.selector.unregister(child.status)
        os.kill(child.pid, signal.SIGKILL)

    def reap(self, child: _LivingChild) -> None:
        if child.status.fileno() in self.selector.get_map():
            self.selector.unregister(child.status)
        self.selector.unregister(child.descriptor)
        os.close(child.descriptor)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # before the pid is free again
        _, status, usage = os.wait4(child.pid, 0)
        del self.living[child.pid]
        # Kill and reap what programs left behind: orphans become children of the zygote
        while strays := _children() - self.living.keys():
            for pid in strays:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        with contextlib.suppress(OSError):
            child.status.send(msgspec.msgpack.encode(wire.ChildEnded(status, usage.ru_maxrss * 1024, child.excess)))
        child.status.close()

    def end(self) -> NoReturn:
        """End everything once the worker has closed the sandbox, or is dead: neither child nor file is left."""
        for pid in self.living:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        remove_folder(Path.cwd())
        os._exit(0)


def _children() -> set[int]:
    """Return pids as this process knows them; /proc may belong to an outer namespace."""
    try:
        numbers = Path("/proc/thread-self/children").read_text().split()
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return set()
    return {int(watch.read_field(Path("/proc", number, "status"), "NSpid")[-1]) for number in numbers}


def _become_child(channel: socket.socket, limits: jail.ChildLimits, zygote: int, namespaced: bool) -> NoReturn:
    """Become the process of one experiment: keep one descriptor, restrict, hand over to the guest."""
    # Its session is a process group as well, which the zygote kills as a whole.
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Close everything else; standard input is empty, standard output and error are discarded
    number = os.dup(channel.detach())
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.dup2(number, CHANNEL, inheritable=False)
    os.closerange(CHANNEL + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    channel = socket.socket(fileno=CHANNEL)
    gc.enable()
    os.chdir(limits.scratch)
    layers = jail.restrict(limits, zygote, namespaced=namespaced)
    if not limits.override and (reason := jail.refusal(layers)):
        proxies.HostLink(channel).send(wire.GuestBroken(reason))
        os._exit(0)
    # The program must not find our modules by an import.
    for name in [name for name in sys.modules if name.split(".")[0] == "workers"]:
        del sys.modules[name]
    guest.serve(channel)


def main(control: int, namespaced: bool) -> None:
    """Load what programs commonly use, once, then run the children."""
    # The variables were for this interpreter; programs get an empty environment.
    os.environ.clear()
    guest.warm_up()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Each child closes all descriptors up to this limit, which may be a million elsewhere.
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    jail.adopt_orphans()
    # Cached here for all children.
    jail.readable()
    gc.collect()
    # Collections in a child would otherwise write to all objects, and so copy the memory that it shares with the
    # zygote.
    gc.freeze()
    supervisor = ChildSupervisor(socket.socket(fileno=control), namespaced)
    supervisor.control.send(b"ready")
    supervisor.run()
