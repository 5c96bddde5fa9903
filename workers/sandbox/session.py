"""The worker's half of the exchange with one child: serve calls, count everything, enforce the bounds.

Every byte read here is hostile: no content makes this module raise anything but `StopError`. Used by `host`, one object
for each experiment, in one thread.
"""

from __future__ import annotations

import inspect
import reprlib
import select
import time
from collections.abc import Callable, Mapping
from typing import Any

from PIL import Image

from workers.errors import Cancelled, SandboxBroke, ToolError, ToolMisuse
from workers.lab.image_headers import count_pixels
from workers.protocols import Bounds
from workers.record.experiments import ExperimentStatus, ToolCall
from workers.sandbox import values, wire
from workers.sandbox.launcher import ChildProcess

_POLL_SECONDS = 0.1
_READY_SECONDS = 30.0
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
_SUMMARY_CHARS = 200


class StopError(Exception):
    """Raised when the worker ends the program: its status, and the reason in words for the agent."""

    def __init__(self, status: ExperimentStatus, reason: str) -> None:
        super().__init__(reason)
        self.status: ExperimentStatus = status
        self.reason = reason


class HostSession:
    """The messages of one experiment."""

    def __init__(
        self,
        child: ChildProcess,
        calls: Mapping[str, Callable[..., Any]],
        bounds: Bounds,
        cancelled: Callable[[], bool],
    ) -> None:
        self.bounds = bounds
        self.limits = wire.FrameLimits(bounds.frame_bytes, bounds.pixels)
        self.output_bytes = 4 * (bounds.output_chars + 1)  # one character more than fits shows that it was cut
        self.output = bytearray()
        self.made: list[ToolCall] = []
        self.tool_seconds = 0.0
        self._child = child
        self._calls = calls
        self._cancelled = cancelled
        self._received = 0
        self._seconds = _READY_SECONDS
        self._started = time.monotonic()
        self._asked = 0.0

    def run(self, start: wire.StartProgram) -> wire.ProgramFinished:
        """Send the program, serve its calls, return how it finished.

        Raises StopError, EOFError if the child is gone, Cancelled, SandboxBroke if the child could not be restricted or
        an answer cannot travel, and whatever a call raises that is not a ToolError.
        """
        self._expect_ready()
        try:
            self._send(start, wire.START_LIMITS)
        except values.SendError as error:
            raise SandboxBroke(f"the program's facts or state cannot be sent: {error}") from error
        while True:
            message = self._receive()
            if isinstance(message, wire.ProgramFinished):
                if len(message.state) > wire.STATE_BYTES:
                    raise _broken_protocol("it leaves too much state")
                return message
            if isinstance(message, wire.CallRequest):
                self._serve(message)
            elif isinstance(message, wire.OutputChunk):
                # Cut here again: the guest's own limit is part of the process that the program controls.
                self.output += message.data[: self.output_bytes - len(self.output)]
            else:
                raise _broken_protocol("it said twice that it is ready")

    def own_seconds(self) -> float:
        """Return the seconds that the program has used itself: wall-clock without the time inside calls."""
        return time.monotonic() - self._started - self.tool_seconds

    def _expect_ready(self) -> None:
        """Wait for the guest's first message, which is ours, not the program's: a failure here is the machinery's."""
        try:
            message = self._receive()
        except (StopError, EOFError) as error:
            raise SandboxBroke(f"the sandbox's child ended before its program began: {error}") from error
        if not isinstance(message, wire.GuestReady):
            reason = message.reason if isinstance(message, wire.GuestBroken) else "it did not say that it is restricted"
            raise SandboxBroke(f"the sandbox runs no program: {reason}")
        # The program's time starts now; forking and restricting are not its own.
        self._seconds = self.bounds.seconds
        self._started = time.monotonic()

    # --- calls ----------------------------------------------------------------------------------------

    def _serve(self, call: wire.CallRequest) -> None:
        function = self._calls.get(call.name)
        if function is None:
            # Our proxies offer only known names, so the program has written to the socket itself.
            raise _broken_protocol("it called a function that is not in its table")
        if len(self.made) >= self.bounds.calls:
            raise StopError(
                "killed", f"The program made more than {self.bounds.calls} calls. Give more images to each call."
            )
        began, failed = time.monotonic(), True
        try:
            _check_signature(call, function)
            _check_pixels(call, self.bounds.call_pixels)
            answer: wire.HostMessage = wire.CallResult(function(*call.args, **call.kwargs))
            failed = False
        except ToolError as error:
            answer = wire.CallFailed(str(error))
        finally:
            seconds = time.monotonic() - began
            self.tool_seconds += seconds
            self.made.append(ToolCall(call.name, _summarize_arguments(call.args, call.kwargs), seconds, failed))
            # Asks right after a call: it may have taken minutes, in which a person stopped the run.
            self._asked = 0.0
        # Only after the call: one call is not interrupted, but no further one starts.
        if self.tool_seconds > self.bounds.tool_seconds:
            words = f"The program's tools took more than {self.bounds.tool_seconds:g} s in all. Ask for fewer images."
            raise StopError("timeout", words)
        try:
            self._send(answer, self.limits)
        except values.TooLargeError as error:
            self._send(wire.CallFailed(f"{call.name}: what it returns is too large: {error}"), self.limits)
        except values.SendError as error:
            raise SandboxBroke(f"{call.name} returned what cannot be sent to the program: {error}") from error

    # --- bytes ----------------------------------------------------------------------------------------

    def _send(self, message: wire.HostMessage, limits: wire.FrameLimits) -> None:
        rest = memoryview(wire.pack(message, limits))
        while rest:
            self._wait(select.POLLOUT)
            try:
                rest = rest[self._child.channel.send(rest) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise EOFError(str(error)) from error

    def _receive(self) -> Any:
        """Receive the next message; its size is checked before anything is allocated."""
        try:
            header, tail = wire.lengths(self._read(wire.PREFIX.size), self.limits)
            self._received += wire.PREFIX.size + header + tail
            # Each frame is bounded, but not their number.
            if self._received > self.bounds.total_bytes:
                raise StopError("killed", f"The program sent more than {self.bounds.total_bytes >> 20} MiB in all.")
            return wire.unpack(self._read(header + tail), header, wire.GuestMessage, self.limits)
        except values.WireError as error:
            raise _broken_protocol(str(error)) from error

    def _read(self, size: int) -> memoryview:
        data = memoryview(bytearray(size))
        filled = 0
        while filled < size:
            self._wait(select.POLLIN)
            try:
                count = self._child.channel.recv_into(data[filled:])
            except BlockingIOError:
                continue
            except OSError as error:
                raise EOFError(str(error)) from error
            if count == 0:
                raise EOFError("it closed its channel")
            filled += count
        return data

    def _wait(self, event: int) -> None:
        """Return once the channel is ready for `event`. Raises Cancelled, StopError, EOFError if the child is gone."""
        poller = select.poll()
        poller.register(self._child.channel, event)
        poller.register(self._child.status, select.POLLIN)
        while True:
            # Ask every 100 ms and right after each call; asking may cost a query
            now = time.monotonic()
            if now - self._asked >= _POLL_SECONDS:
                self._asked = now
                if self._cancelled():
                    raise Cancelled("the experiment was cancelled")
            left = self._seconds - self.own_seconds()
            if left <= 0:
                words = f"The program ran for more than {self.bounds.seconds:g} s of its own time (time inside tools is"
                words += " not counted) and was stopped. Look for a loop that does not end, or do less at once."
                raise StopError("timeout", words)
            ready = dict(poller.poll(1000 * min(_POLL_SECONDS, left)))
            if ready.get(self._child.channel.fileno(), 0) & (event | _READABLE):
                return
            if ready:
                raise EOFError("its process is gone")


def _summarize_arguments(args: list[Any], kwargs: Mapping[str, Any]) -> str:
    """Summarize a call's arguments in at most 200 characters; images, long texts and long lists by their size."""
    words = [_shorten(arg) for arg in args] + [f"{str(key)[:40]}={_shorten(value)}" for key, value in kwargs.items()]
    line = ", ".join(words[:20])
    return line if len(line) <= _SUMMARY_CHARS else line[: _SUMMARY_CHARS - 1] + "…"


def _shorten(value: Any) -> str:
    if isinstance(value, Image.Image):
        return f"<{value.width}x{value.height} image>"
    if isinstance(value, list | tuple) and value and isinstance(value[0], Image.Image):
        return f"<{len(value)} images>"
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) and len(item) > 200 for item in value):
        return f"<{len(value)} texts of {sum(map(len, value)):,} characters>"
    if isinstance(value, list | tuple):
        more = ["…"] if len(value) > 4 else []
        return f"[{', '.join([*(_shorten(item) for item in value[:4]), *more])}]"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "…")
    return reprlib.repr(value)


def _check_signature(call: wire.CallRequest, function: Callable[..., Any]) -> None:
    """Refuse arguments that the function does not take, before it is called. Raises ToolMisuse."""
    # Before the call: a TypeError from inside the tool would be a failure of ours.
    signature = inspect.signature(function)
    try:
        signature.bind(*call.args, **call.kwargs)
    except TypeError as error:
        raise ToolMisuse(f"{call.name}: {error}; it takes {signature}") from None


def _check_pixels(call: wire.CallRequest, most: int) -> None:
    """Refuse images that are too many pixels together, before any text of one is decoded. Raises ToolMisuse."""
    pixels = sum(map(_count_pixels, (*call.args, *call.kwargs.values())))
    if pixels > most:
        raise ToolMisuse(
            f"{call.name}: the images of this call are {pixels:,} pixels in all; one call takes {most:,} pixels at "
            "most. Make them smaller, as 224 x 224, or call several times with fewer."
        )


def _count_pixels(value: Any) -> int:
    """Count the pixels of all images in a value, including those that travel as text."""
    if isinstance(value, Image.Image):
        return value.width * value.height
    # Images may come as Base64 text; only their headers are read here.
    if isinstance(value, str):
        return count_pixels(value)
    if isinstance(value, dict):
        value = list(value.values())
    return sum(map(_count_pixels, value)) if isinstance(value, list | tuple) else 0


def _broken_protocol(reason: str) -> StopError:
    return StopError("killed", f"The program's process broke the protocol of the sandbox: {reason}.")
