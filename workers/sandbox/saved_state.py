"""Save what one program leaves to the next: names bound to plain data, arrays and images, and definitions as source.

Kept: None, booleans, numbers, texts, bytes, lists, tuples, dicts with texts or numbers as keys, NumPy arrays without
objects, PIL images; imports, functions and classes by their source (`program`). Not kept: objects of classes, sets,
open files, names bound by functions elsewhere, names that begin with an underscore or that every program has, and what
does not fit; two names of one list come back as two lists. Lives in the child.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from workers.sandbox.program import Sources, bound_name, find_definitions, fit_budget
from workers.sandbox.values import SendError, WireError, decode_state, encode_state

_OURS = {"system", "tools", "display", "Image", "np", "ToolError", "System", "Tools"}
RESERVED = frozenset(name for name in dir(builtins) if not name.startswith("_")) | _OURS
"""Names that mean the same in every program, whatever an earlier one bound to them."""


def save_state(
    namespace: Mapping[str, Any], budget: int, program: str = "", earlier: Sources = MappingProxyType({})
) -> tuple[bytes, list[str]]:
    """Return what a program leaves, its plain data in at most `budget` bytes, and sentences on what it does not leave.

    `earlier` are the definitions that were kept before it.
    """
    # A copy of the items: a thread of the program may still bind names.
    found = {name: _try_encode(value) for name, value in list(namespace.items()) if _is_keepable(name)}
    pieces = {name: piece for name, piece in found.items() if piece is not None}
    defined = find_definitions(program).items()
    mine = {name: source for name, source in defined if "*" in name or bound_name(name) in namespace}
    sources = {name: source for name, source in earlier.items() if name not in mine} | mine
    kept, left_out = fit_budget({name: source for name, source in sources.items() if _is_unchanged(name, pieces)})
    # The smallest first, so that one large array does not cost all other names.
    for name in sorted(pieces, key=lambda name: len(pieces[name])):
        budget -= len(pieces[name]) + len(name) + 32
        if budget < 0:
            left_out.append(name)
    values = {name: piece for name, piece in pieces.items() if name not in left_out}
    hidden = [name for name in sorted(RESERVED) if name in namespace and _try_encode(namespace[name]) is not None]
    remarks = {
        "too large to be kept for the next experiment": left_out,
        "not kept for the next experiment, where the name has its usual meaning again": hidden,
    }
    lost = [f"{what}: {', '.join(names)}" for what, names in remarks.items() if names]
    # Nothing is pickled: the worker holds these bytes and never reads them, and the next child reads plain data.
    return encode_state({"values": values, "sources": kept}), lost


def restore_state(state: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what exists when a program begins: values by name, and kept definitions, name -> source.

    Reserved names are left out. Raises WireError if the bytes are something else.
    """
    if not state:
        return {}, {}
    try:
        found = decode_state(state)
        if set(found) != {"values", "sources"} or not isinstance(found["values"], dict):
            found = {"values": found, "sources": {}}  # the format of earlier versions
        values = {name: decode_state(piece)["value"] for name, piece in found["values"].items() if _is_keepable(name)}
        return values, {str(name): str(source) for name, source in found["sources"].items() if _is_unchanged(name, {})}
    except Exception as error:  # any failure means that they are not kept state
        raise WireError("the names of earlier experiments cannot be read; bind them again") from error


def _is_keepable(name: str) -> bool:
    """True if a name may come from an earlier program: no leading underscore, and not one that every program has."""
    return name.isidentifier() and not name.startswith("_") and name not in RESERVED


def _is_unchanged(name: str, pieces: Mapping[str, bytes]) -> bool:
    """True if its name still means this definition: it may be bound to plain data since."""
    bound = bound_name(name)
    return "*" in name or (not bound.startswith("__") and bound not in RESERVED and bound not in pieces)


def _try_encode(value: Any) -> bytes | None:
    try:
        return encode_state({"value": value})
    except SendError:
        return None
