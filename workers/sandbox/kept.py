"""What one free-form script leaves to the next: its names bound to plain data, arrays and images.

Kept: None, booleans, numbers, texts, bytes, lists, tuples, dicts with texts or numbers as keys, NumPy arrays
without objects, PIL images. Not kept: modules, functions, classes and their objects, sets, open files, names
that begin with an underscore, and whatever does not fit; two names of one list come back as two lists.
Nothing is pickled. Lives in the child; the worker holds the bytes and never reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workers.sandbox import values


def keep(namespace: Mapping[str, Any], budget: int) -> tuple[bytes, list[str]]:
    """The namespace's plain data in at most `budget` bytes, and the names that did not fit, largest last."""
    pieces: dict[str, bytes] = {}
    for name, value in list(namespace.items()):
        if not name.startswith("_") and (piece := _encoded(value)) is not None:
            pieces[name] = piece
    left_out = []
    for name in sorted(pieces, key=lambda name: len(pieces[name])):
        budget -= len(pieces[name]) + len(name) + 32
        if budget < 0:
            left_out.append(name)
    return values.encode_state({name: piece for name, piece in pieces.items() if name not in left_out}), left_out


def restore(state: bytes) -> dict[str, Any]:
    """The names and values that `keep` was given. Raises WireError if the bytes are something else."""
    if not state:
        return {}
    try:
        return {name: values.decode_state(piece)["value"] for name, piece in values.decode_state(state).items()}
    except Exception as error:  # whatever is wrong with them, they are not kept state
        raise values.WireError("the names of earlier experiments cannot be read; bind them again") from error


def _encoded(value: Any) -> bytes | None:
    try:
        return values.encode_state({"value": value})
    except values.SendError:
        return None
