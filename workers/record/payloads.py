"""What can be read of a payload that lies in a database: everything, or what is left where fields are missing or odd.

Called by the rows of events, so that every page opens whatever is stored.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from workers.record.events import PAYLOADS, from_json


def readable(kind: str, data: Any) -> tuple[dict[str, Any], bool]:
    """What can be read of a payload that was stored, with every field of its kind, and whether that is all of it.

    A field of another type, or a missing one that must be there, is empty. For pages, which open whatever is stored.
    """
    known = data if isinstance(data, dict) else {}
    if kind not in PAYLOADS:
        return known, False
    try:
        return completed(asdict(from_json(kind, known)), known), True
    except msgspec.ValidationError:
        blanks, types = shape_of(PAYLOADS[kind])
        sound = blanks | {name: each for name, each in known.items() if is_of(each, types.get(name, Any))}
        return completed(asdict(from_json(kind, sound)), sound), False


def completed(whole: Any, known: Any) -> Any:
    """`known` as it stands, with what only `whole` has."""
    if isinstance(whole, dict) and isinstance(known, dict):
        return known | {name: completed(each, known[name]) if name in known else each for name, each in whole.items()}
    if isinstance(whole, tuple) and isinstance(known, list):
        return [completed(*each) for each in zip(whole, known, strict=True)]
    return known


def shape_of(payload: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stands for the fields that every payload of this class has, and the type of each field."""
    types = get_type_hints(payload)
    needed = [each.name for each in fields(payload) if each.default is MISSING and each.default_factory is MISSING]
    return {name: empty(types[name]) for name in needed}, types


def empty(wanted: Any) -> Any:
    """Plain JSON that stands for a missing value of this type."""
    if get_origin(wanted) is Literal:
        return get_args(wanted)[0]
    if isinstance(wanted, type) and is_dataclass(wanted):
        return shape_of(wanted)[0]
    return {int: 0, float: 0.0, str: "", bool: False}.get(wanted)


def is_of(value: Any, wanted: Any) -> bool:
    try:
        msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        return False
    return True
