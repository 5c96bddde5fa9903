"""Run one program in the child and tell the host how it ended. Called by `zygote`, after the restrictions."""

from __future__ import annotations

import ast
import errno
import functools
import importlib
import io
import os
import random
import socket
import sys
import tempfile
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
import PIL
from PIL import Image

from workers.sandbox import failure, jail, program, proxies, saved_state, values, wire

Status = Literal["ok", "program_error", "tool_error", "memory"]
SEED = "experiment.seed"
_MARK = "__entry_point__"
_MODULES = ("base64", "collections", "io", "itertools", "json", "math", "random", "statistics")
"""Modules that published scripts use without an import, besides NumPy as `np` and Pillow."""
_TYPING = ("Any", "Callable", "Dict", "Iterable", "List", "Optional", "Sequence", "Set", "Tuple", "Union")


def warm_up() -> None:
    """Load, before any fork, what programs commonly use and is small: 0.1 to 2 ms and under 100 KiB each."""
    # Modules that take 10 ms or megabytes and are rarely used (asyncio, urllib, numpy.ma) are left to the programs.
    import base64  # noqa: F401
    import collections  # noqa: F401
    import colorsys  # noqa: F401
    import concurrent.futures.thread  # noqa: F401
    import heapq  # noqa: F401
    import itertools  # noqa: F401
    import json  # noqa: F401
    import pprint  # noqa: F401
    import statistics  # noqa: F401

    from PIL import ImageDraw, ImageEnhance, ImageFilter, ImageOps  # noqa: F401

    Image.preinit()
    # Pack and format once, so that the classes' encoders are built before the fork instead of in each child.
    frame = memoryview(wire.pack(wire.StartProgram("", [], {}, b"", 0, 0, 0), wire.START_LIMITS))
    header, _ = wire.lengths(frame[: wire.PREFIX.size], wire.START_LIMITS)
    wire.unpack(frame[wire.PREFIX.size :], header, wire.HostMessage, wire.START_LIMITS)
    failure.format_error(SyntaxError("warm"))
    np.random.seed(0)


def serve(channel: socket.socket) -> NoReturn:
    """Receive a program, run it, report its end."""
    link = proxies.HostLink(channel)
    link.send(wire.GuestReady())
    start = link.receive(wire.START_LIMITS)
    # From now on the program's own limits hold: only the frame that carries its state may be larger.
    link.limits = wire.FrameLimits(start.frame_bytes, start.pixels)
    link.send(GuestSession(link, start).run())
    # Not sys.exit: no thread and no exit handler of the program may run on.
    os._exit(0)


class GuestSession:
    """One program and what it sees."""

    def __init__(self, link: proxies.HostLink, start: wire.StartProgram) -> None:
        self.link = link
        self.start = start
        # Make standard output and error one stream to the host, sent line by line.
        raw: Any = proxies.OutputStream(link, start.output_bytes)
        console = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = console  # type: ignore[misc]
        # Landlock allows writing in this folder alone; tempfile would try /tmp first.
        tempfile.tempdir = str(Path.cwd())
        self.console = console
        self.system = proxies.make_proxy(link, "system", start.names, start.facts, self._flush)
        self.tools = proxies.make_proxy(link, "tools", start.names, start.facts, self._flush)

    def run(self) -> wire.ProgramFinished:
        """Execute the program; any exception it raises becomes its end."""
        # Make the program's randomness repeatable; seeds are integers of any size.
        seed = self.start.facts.get(SEED)
        if isinstance(seed, int):
            random.seed(seed)
            # NumPy takes seeds of 32 bits only.
            np.random.seed(seed % 2**32)
        failure.show_source(self.start.program)
        earlier: dict[str, Any] = {}
        sources: dict[str, str] = {}
        try:
            earlier, sources = saved_state.restore_state(self.start.state)
        # Unreadable state loses the earlier names but does not stop this program.
        except values.WireError as unreadable:
            self._note(str(unreadable))
        # One namespace, that of a module __main__, so that helpers and comprehensions see `system` and `tools` too.
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        sys.argv[:] = [failure.FILE_NAME]
        namespace = module.__dict__
        namespace.update({name: getattr(typing, name) for name in _TYPING})
        namespace.update({name: importlib.import_module(name) for name in _MODULES}, PIL=PIL, numpy=np)
        own = self._own()
        namespace.update(earlier | own)
        # The earlier definitions that the program uses; those that fail are not kept
        failed = program.define(program.select_used(self.start.program, sources), namespace)
        for name, why in failed.items():
            self._note(f"{name} of an earlier experiment cannot be defined again ({why}); define it in this program")
        # Again, since an earlier definition may have rebound one of our names.
        namespace.update(own)
        sources = {name: source for name, source in sources.items() if name not in failed}
        status, error = self._attempt(namespace)
        # Half a frame: the message also carries the error and its own header.
        budget = min(wire.STATE_BYTES, self.link.limits.frame_bytes // 2)
        try:
            state, remarks = saved_state.save_state(namespace, budget, self.start.program, sources)
            for words in remarks:
                self._note(words)
        # The earlier state is kept when there is no memory to save the new one.
        except MemoryError:
            state = self.start.state
        # Before the end is sent: the host reads nothing after it.
        self._flush()
        return wire.ProgramFinished(status, error, state)

    def _attempt(self, namespace: dict[str, Any]) -> tuple[Status, str]:
        """Run the program, then its entry point unless it called that itself; return how it ended."""
        try:
            exec(_compile(self.start.program), namespace)  # noqa: S102 this is what the child is for
            defined = (namespace.get(name) for name in program.ENTRY_POINTS)
            function = next((each for each in defined if isinstance(each, types.FunctionType)), None)
            # A published script may call its entry point itself; a second run would measure everything twice.
            if function and not getattr(function, "entered", False):
                function(self.system, self.tools)
        except BaseException as error:  # noqa: BLE001 it is the program's, and is reported
            status = _status(error)
            return status, "" if status == "ok" else failure.format_error(error)
        return "ok", ""

    def _own(self) -> dict[str, Any]:
        """Return the names that no earlier program may replace."""
        own = {
            "system": self.system,
            "tools": self.tools,
            "Image": Image,
            "np": np,
            "ToolError": proxies.GuestToolError,
            "System": type(self.system),
            "Tools": type(self.tools),
            _MARK: _entry_point,
        }
        return own | ({"display": self.tools.display} if "tools.display" in self.start.names else {})

    def _note(self, words: str) -> None:
        """Write a line of ours into the program's output."""
        if not self.console.closed:
            self.console.write(f"[{words}]\n")

    def _flush(self) -> None:
        if not self.console.closed:
            self.console.flush()


def _compile(text: str) -> types.CodeType:
    """Compile the program with marked entry points."""
    # With annotations that are not evaluated, a program may name types that it does not import.
    flags = annotations.compiler_flag
    try:
        compile(text, failure.FILE_NAME, "exec", flags, dont_inherit=True)
        tree = ast.parse(text, failure.FILE_NAME)
        for function in program.find_entry_points(tree):
            function.decorator_list.insert(0, ast.copy_location(ast.Name(_MARK, ast.Load()), function))
        return compile(tree, failure.FILE_NAME, "exec", flags, dont_inherit=True)
    # Deep nesting exhausts the parser, not the program's memory, so it counts as an error of syntax.
    except (MemoryError, RecursionError):
        raise SyntaxError("the program is nested too deeply") from None


def _entry_point(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the function as called, since a program may call it itself at top level."""

    @functools.wraps(function)
    def entered(*args: Any, **kwargs: Any) -> Any:
        entered.entered = True  # type: ignore[attr-defined]
        return function(*args, **kwargs)

    return entered


def _status(error: BaseException) -> Status:
    """Return the status that an uncaught exception gives the program."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        # Formatting the error needs memory too.
        jail.release_reserve()
        return "memory"
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return "ok"
    return "tool_error" if isinstance(error, proxies.GuestToolError) else "program_error"
