"""Opens a function by its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workers.errors import UnknownName
from workers.functions.black_box import BlackBox
from workers.functions.numeric import create_numeric
from workers.functions.strings import create_strings

FAMILIES: Mapping[str, Callable[[int], BlackBox]] = {"numeric": create_numeric, "strings": create_strings}


def open_function(key: str) -> BlackBox:
    """Return the function of a key such as "numeric:17". Raises UnknownName."""
    family, _, seed = key.partition(":")
    if family not in FAMILIES or not (seed.isascii() and seed.isdigit() and len(seed) <= 18):
        wanted = " or ".join(f"{name}:17" for name in FAMILIES)
        raise UnknownName(f"There is no function {key[:60]!r}: give a family and a whole number, such as {wanted}.")
    return FAMILIES[family](int(seed))
