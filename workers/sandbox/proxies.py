"""The objects that a program holds: `system` and `tools`, whose methods are calls to the worker. Lives in the child.

Errors that can be found early are raised here, in the program's own traceback.
"""

from __future__ import annotations

import io
import os
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from workers.sandbox import values, wire

SERVED_ATTRIBUTES = ("experiment_log", "results_list")
"""Attributes whose value is looked up each time (paper, appendix A)."""


class GuestToolError(Exception):
    """A tool could not do what the program asked. A program may catch it."""

    __module__ = "builtins"  # so that a traceback says only ToolError


class HostLink:
    """The child's end of the wire. Threads of the program may share it; calls run one at a time."""

    def __init__(self, channel: socket.socket) -> None:
        self.limits = wire.FrameLimits()
        self._channel = channel
        self._sending = threading.Lock()
        self._calling = threading.Lock()

    def send(self, message: wire.WireMessage) -> None:
        frame = wire.pack(message, self.limits)
        with self._sending:
            self._channel.sendall(frame)

    def receive(self, limits: wire.FrameLimits) -> Any:
        """Return the next message of the host, which is trusted to be well formed."""
        header, tail = wire.lengths(self._read(wire.PREFIX.size), limits)
        return wire.unpack(self._read(header + tail), header, wire.HostMessage, limits)

    def call(self, name: str, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a function of the table in the worker; returns its answer or raises ToolError."""
        # Not checked for safety: the program could change this code, so the worker checks every call again.
        named = {key: _name_proxy(arg) for key, arg in kwargs.items()}
        message = wire.CallRequest(name, [_name_proxy(arg) for arg in args], named)
        # A thread that sends its call before another one's answer is read would take that answer.
        with self._calling:
            try:
                self.send(message)
            except values.SendError as error:
                raise GuestToolError(f"{name}: an argument is wrong: {error}") from None
            answer = self.receive(self.limits)
        if isinstance(answer, wire.CallFailed):
            raise GuestToolError(answer.message)
        return answer.value

    def _read(self, size: int) -> memoryview:
        data = memoryview(bytearray(size))
        if self._channel.recv_into(data, size, socket.MSG_WAITALL) != size:
            os._exit(0)  # the worker is gone
        return data


class OutputStream(io.RawIOBase):
    """Standard output and error: sends what is written up to the limit, then drops it."""

    def __init__(self, link: HostLink, budget: int) -> None:
        self._link = link
        self._budget = budget

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = len(memoryview(data).cast("B"))
        # The rest is dropped, but counts as written: a program that prints too much runs on.
        if self._budget > 0:
            self._link.send(wire.OutputChunk(bytes(data[: self._budget])))
            self._budget -= size
        return size


class Proxy:
    """Base of `system` and `tools`."""

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(sorted(name for name in dir(self) if not name.startswith("_")))
        raise AttributeError(f"{_name_proxy(self)} has no attribute {name!r}; it has {known}", name=name, obj=self)


def make_proxy(
    link: HostLink, owner: str, names: Iterable[str], facts: Mapping[str, Any], flush: Callable[[], None]
) -> Proxy:
    """Build the object `owner`: a method for each "owner.method", an attribute for each fact "owner.attribute"."""
    own = {full: full.partition(".")[2] for full in (*names, *facts) if full.startswith(f"{owner}.")}
    members = {name: facts[full] if full in facts else _member(link, full, name, flush) for full, name in own.items()}
    return type(owner.capitalize(), (Proxy,), members)()


def _member(link: HostLink, full: str, name: str, flush: Callable[[], None]) -> Any:
    def method(_: Proxy, *args: Any, **kwargs: Any) -> Any:
        # What was printed before a call reaches the host before it, in the order of the program.
        flush()
        return link.call(full, args, kwargs)

    method.__name__ = name
    method.__qualname__ = full
    return property(method) if name in SERVED_ATTRIBUTES else method


def _name_proxy(value: Any) -> Any:
    """Pass a proxy as its name: published programs write `tools.dataset_exemplars(system)`."""
    return type(value).__name__.lower() if isinstance(value, Proxy) else value
