"""Convert payloads to plain JSON and back. Data from a database are decoded here and nowhere else."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from workers.record.events import KINDS, Payload, Unreadable


def encode(value: Any) -> dict[str, Any]:
    """Return a payload, or a class inside one, as plain JSON with every field."""
    return msgspec.to_builtins(value)


def decode(kind: str, data: Any) -> Payload:
    """Return the payload of an event of this kind. Raises ValueError for invalid data or an unknown kind."""
    if kind not in KINDS:
        raise ValueError("there is no such kind of event")
    try:
        return msgspec.convert(data, KINDS[kind].payload)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def read(kind: str, data: Any) -> tuple[Payload, bool]:
    """Return what can be read of a stored payload, and whether it was complete.

    For pages, which must open any stored run.
    """
    # 1. A kind of a later version
    if kind not in KINDS:
        return Unreadable(), False
    # 2. A sound payload
    try:
        return decode(kind, data), True
    # 3. A damaged one: keep the sound fields
    except ValueError:
        payload = KINDS[kind].payload
        types, known = get_type_hints(payload), data if isinstance(data, dict) else {}
        # What is sound is kept, and what is missing is left empty: one damaged field must not hide the rest.
        sound = {name: each for name, each in known.items() if name in types and is_of_type(each, types[name])}
        return decode(kind, _blank(payload) | sound), False


def _blank(payload: Any) -> dict[str, Any]:
    """Return empty values for the required fields of this class."""
    types = get_type_hints(payload)
    # Fields with a default need no value
    needed = [each.name for each in fields(payload) if each.default is MISSING and each.default_factory is MISSING]
    return {name: _build_empty(types[name]) for name in needed}


def _build_empty(wanted: Any) -> Any:
    """Return the plain JSON that replaces a missing value of this type."""
    if get_origin(wanted) is Literal:
        return get_args(wanted)[0]
    if isinstance(wanted, type) and is_dataclass(wanted):
        return _blank(wanted)
    return {int: 0, float: 0.0, str: "", bool: False}.get(wanted)


def is_of_type(value: Any, wanted: Any) -> bool:
    """True if the value is plain JSON of this type."""
    try:
        msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        return False
    return True
