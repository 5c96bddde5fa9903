"""Functions of the laboratory that imports need. Workers provide them; the web process has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Progress = Callable[[str, int, int], None]
"""Called as `progress(what, done, total)`. May raise Cancelled."""


def ignore_progress(what: str, done: int, total: int) -> None:
    """Discard a progress report."""


@dataclass(frozen=True)
class Decoded:
    """An image that was decoded and encoded again."""

    key: str
    width: int
    height: int
    png: bytes


@dataclass(frozen=True)
class ImageServices:
    """The functions that imports call. Each raises ValueError with the reason for invalid input."""

    decode: Callable[[bytes], Decoded]
    """Decode the bytes of an image file."""
    parse: Callable[[str], dict[str, Any]]
    """Parse a reply into prose, hypotheses, code and conclusion."""
