"""Find the property that an edit changed, and what an image shows: from toybox's scenes, else from the edit's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from workers.toybox.world.scenes import COLOURS, GROUNDS, LIGHTS, SIZES, Scene

PROPERTIES = ("noun", "colour", "size", "count", "ground", "light", "place", "several", "other")
"""Properties that an edit may change, in the order in which pages list them."""
SIGNS: Mapping[str, str] = {
    "count": "add|insert|remove|delete|without|another|more|fewer|two|three|second",
    "light": "|".join((*LIGHTS, "lighting", "brighter", "darker", "sunny", "daytime", "night-time")),
    "ground": "|".join((*GROUNDS, "background", "ground", "floor", "scenery", "landscape", "surroundings")),
    "size": "|".join((*SIZES, "bigger", "smaller", "tiny", "huge", "size")),
    "colour": "|".join((*COLOURS, "gray", "grey", "colou?r", "paint", "recolou?r")),
    "noun": "replace|swap|turn .+ into|change .+ (?:to|into) an?",
    "place": "move|left|right|behind|front|top|rotate",
}
"""Words in an instruction that tell what it changes; the first match counts."""


def name_change(before: Scene, after: Scene) -> str:
    """Return the property that differs between two scenes; "several" if more than one does."""
    found = set()
    if before.ground != after.ground:
        found.add("ground")
    if before.light != after.light:
        found.add("light")
    if len(before.things) != len(after.things):
        found.add("count")
    else:
        for one, other in zip(before.things, after.things, strict=True):
            found |= {name for name in ("noun", "colour", "size") if getattr(one, name) != getattr(other, name)}
        places = [[(each.x, each.y, each.on) for each in scene.things] for scene in (before, after)]
        # A place counts only if nothing else changed: an object that grows also moves if it would not fit.
        if not found and places[0] != places[1]:
            found.add("place")
    if len(found) > 1:
        return "several"
    return found.pop() if found else "other"


def guess_change(instruction: str) -> str:
    """Return the property that an instruction names; "other" if it names none."""
    words = instruction.casefold()
    return next((name for name, signs in SIGNS.items() if re.search(rf"\b(?:{signs})\b", words)), "other")


def list_contexts(scene: Scene) -> Iterator[tuple[str, str]]:
    """Yield what a scene shows as (property, word): its ground and light, the number of objects, and properties of
    each."""
    yield "ground", scene.ground
    yield "light", scene.light
    yield "count", f"{len(scene.things)} thing{'s' * (len(scene.things) != 1)}"
    # Each word once, however many objects have it.
    for name in ("noun", "colour", "size"):
        yield from ((name, word) for word in sorted({str(getattr(each, name)) for each in scene.things}))
