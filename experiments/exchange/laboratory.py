"""What reading a file from elsewhere needs of the laboratory; a worker has it, the web process has not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Progress = Callable[[str, int, int], None]
"""Called as `progress(what, done, total)`; may raise Cancelled."""


def ignore_progress(what: str, done: int, total: int) -> None:
    """The report nobody listens to."""


@dataclass(frozen=True)
class Decoded:
    """An image that was really one, encoded anew."""

    key: str
    width: int
    height: int
    png: bytes


@dataclass(frozen=True)
class Laboratory:
    """Each raises ValueError with the reason if its input is not what it should be."""

    decode: Callable[[bytes], Decoded]
    """The file of an image -> the image."""
    parse: Callable[[str], dict[str, Any]]
    """A reply -> its prose, hypotheses, code and conclusion."""
