"""Open a function by its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workers.errors import UnknownName
from workers.functions.black_box import BlackBox
from workers.functions.numeric import create_numeric
from workers.functions.strings import create_strings
from workers.functions.words.concepts import create_concepts
from workers.functions.words.relations import create_relations
from workers.sentences import Nearness, load_sentences

FindNearness = Callable[[], Nearness]
"""Gives what says how near words are in meaning. Raises MissingPart where there is none."""

FAMILIES: Mapping[str, Callable[[int, FindNearness], BlackBox]] = {
    "numeric": lambda seed, _: create_numeric(seed),
    "strings": lambda seed, _: create_strings(seed),
    "concepts": lambda seed, find_nearness: create_concepts(seed, find_nearness()),
    "relations": lambda seed, _: create_relations(seed),
}


def open_function(key: str, find_nearness: FindNearness = load_sentences) -> BlackBox:
    """Return the function of a key such as "numeric:17". Raises UnknownName; MissingPart where it compares words and
    nothing here can."""
    family, _, seed = key.partition(":")
    # `isdigit` also accepts digits of other scripts; 18 digits fit into 64 bits
    if family not in FAMILIES or not (seed.isascii() and seed.isdigit() and len(seed) <= 18):
        wanted = " or ".join(f"{name}:17" for name in FAMILIES)
        raise UnknownName(f"There is no function {key[:60]!r}: give a family and a whole number, such as {wanted}.")
    return FAMILIES[family](int(seed), find_nearness)
