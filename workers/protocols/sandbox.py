"""Programs in the sandbox: their limits and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from workers.protocols.images import Json
from workers.record.experiments import ExperimentStatus, ToolCall


@dataclass(frozen=True)
class Bounds:
    """Limits of one program."""

    seconds: float = 60.0
    """Wall-clock seconds of the program itself; time inside tools is counted separately."""
    tool_seconds: float = 600.0
    output_chars: int = 20_000
    memory_bytes: int = 2 << 30
    frame_bytes: int = 64 << 20
    """Bytes of one message, either way."""
    total_bytes: int = 4 << 30
    """Bytes of all that a program sends."""
    calls: int = 1_000
    pixels: int = 4096 * 4096
    """Pixels of one image."""
    call_pixels: int = 64 << 20
    """Pixels of all images in the arguments of one call: 64 of 1024 x 1024."""
    image_bytes: int = 512 << 20
    """Bytes of images that one program may store, at three a pixel: PNG takes no more."""
    run_image_bytes: int = 8 << 30
    """The same for all programs of a run: 30 rounds of 900 images of 224 x 224 pixels, with their masks."""


@dataclass(frozen=True)
class ExperimentResult:
    """The result of a program. A failure of our machinery is a MachineryError instead."""

    status: ExperimentStatus
    output: str = ""
    output_truncated: bool = False
    error: str = ""
    """Traceback with the program's own line numbers, or the reason in words; empty if the program succeeded."""
    seconds: float = 0.0
    """The program's own time, in seconds."""
    tool_seconds: float = 0.0
    calls: tuple[ToolCall, ...] = ()
    state: bytes = b""
    """What a free-form script leaves to the next: msgpack of plain data; only the guest reads it."""


class Sandbox(Protocol):
    def run(
        self,
        program: str,
        calls: Mapping[str, Callable[..., Any]],
        facts: Mapping[str, Json],
        *,
        bounds: Bounds,
        state: bytes = b"",
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ExperimentResult:
        """Run a program that the agent wrote in its own child process.

        `calls` maps "system.neuron", "tools.text2image", … to the functions that serve them; arguments and results are
        numbers, text, None, PIL images, and lists and dicts of these. `facts` are the plain attributes that the proxies
        show, as {"system.layer": "layer4", …}. A ToolError raised by a call is raised again in the program. Raises
        Cancelled when `cancelled()` turns true (the child is killed), SandboxBroke when it cannot run at all; any other
        exception of a call kills the child and passes through.
        """
