"""Parts that the toys have, as words of a label. Naming one changes nothing, because every such toy has it.

"Mushrooms with white spots" are mushrooms, "tables with brown legs" are brown tables, and "mushrooms with blue
spots" are not understood. Parts, colours and numbers follow the models in `toys`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workers.toybox.world.label_words import LabelAlternative, LabelPart
from workers.toybox.world.words import Word, plural

_MAX_WORDS = 2
"""Maximum number of words in the name of a part."""


@dataclass(frozen=True)
class ToyPart:
    """One part of a toy."""

    adjectives: frozenset[str] = frozenset()
    """Valid adjectives, mostly its colour."""
    own: bool = False
    """True if it has the colour of the toy."""
    count: int = 1
    """How many of it a toy has."""


def _read_table(table: Mapping[str, str]) -> Mapping[str, Mapping[str, ToyPart]]:
    """Return toy -> name of a part, singular or plural -> the part. Parses "spot, dot: white x7; cap: own"."""
    return {noun: dict(_read_parts(text)) for noun, text in table.items()}


def _read_parts(text: str) -> Iterator[tuple[str, ToyPart]]:
    for entry in text.split(";"):
        names, _, said = entry.partition(":")
        words = said.split()
        counts = [int(word[1:]) for word in words if re.fullmatch(r"x\d", word)]
        part = ToyPart(frozenset(words) - {"own"}, "own" in words, *counts)
        for name in (each.strip() for each in names.split(",")):
            yield name, part
            yield plural(name), part


TOY_PARTS = _read_table(
    {
        "cube": "corner, edge: own x8; side, face: own x6",
        "cone": "tip, apex, base: own pointed pointy",
        "cylinder": "end, base: own round circular flat x2",
        "ring": "hole: round x1",
        "pyramid": "tip, apex, base: own pointed pointy; side: own triangular x4",
        "star": "point, spike, arm, tip: own pointed x5",
        "car": "wheel, tyre, tire: black dark round x4; window, windscreen, windshield: blue pale x4; "
        "headlight, headlamp, light: yellow bright x2; roof, body, bonnet, hood: own",
        "train": "wheel: black dark round x6; window: blue pale x2; roof, chimney, funnel, smokestack: black dark; "
        "headlight, headlamp, lamp: yellow bright; boiler, cabin, cab, body: own",
        "boat": "sail: white pale triangular x2; mast: brown wooden; deck: brown wooden; hull: own",
        "rocket": "fin: own x3; body: own; window, porthole: blue pale round; nozzle, engine: black dark; "
        "nose, tip, nose cone: grey gray silver metallic pointed pointy",
        "house": "roof: brown black dark grey gray pointed pointy triangular gabled; chimney: brown black dark; "
        "window: blue pale square rectangular x3; door: brown wooden; wall: own x4",
        "tree": "trunk: brown wooden; tier, layer: own x3; branch, needle, foliage, leaves: own; tip, top: own pointed",
        "mushroom": "spot, dot, polka dot, speckle: white round x7; stem, stalk: white pale; cap, top: own round",
        "snowman": "hat, top hat: black dark; nose, carrot nose, carrot: orange pointed pointy; "
        "eye: black dark x2; button: black dark x2; arm, twig: brown wooden x2; head, body: own round",
        "duck": "beak, bill: orange; eye: black dark x2; wing: own x2; tail, head, body: own",
        "chair": "leg: own straight x4; back, backrest, seat: own",
        "table": "leg: own straight x4; top, tabletop: own flat rectangular",
        "cup": "handle: own round curved; rim: own round; coffee: brown dark",
        "robot": "eye: white black round x2; mouth: black dark; leg, arm, limb: grey gray silver metallic x2; "
        "antenna: orange; chest plate, panel, chest, screen: white pale rectangular; head, body: own square boxy",
    }
)

_FEATURES: Mapping[str, str] = {
    "five-pointed 5-pointed five-point pointed": "star",
    "four-legged 4-legged": "table chair",
    "three-tiered three-tier three-layered tiered": "tree",
    "four-wheeled 4-wheeled wheeled": "car",
    "six-wheeled": "train",
    "three-finned finned": "rocket",
    "two-armed two-legged two-eyed": "robot",
    "four-sided": "pyramid",
    "six-sided": "cube",
    "round": "ball ring",
    "spherical": "ball",
    "conical": "cone tree",
    "spotted dotted speckled": "mushroom",
    "3d three-dimensional 3-dimensional": " ".join(TOY_PARTS) + " ball",
}
_HAS = {name: frozenset(toys.split()) for names, toys in _FEATURES.items() for name in names.split()}
"""Adjective -> toys that all have this property."""


def absorb_parts(alternative: LabelAlternative) -> LabelAlternative:
    """Return the alternative without parts that its toys have anyway. Wrong statements about a part stay as unknown
    words."""
    parts = [replace(each, words=_drop_features(each.words)) for each in alternative.parts]
    for place, part in enumerate(parts):
        if owner := _find_owner(parts, place):
            _absorb(part, owner)
    kept = [each for each in parts if not each.empty]
    for each in kept[:1]:
        each.joint = ""
    return replace(alternative, parts=tuple(kept))


def _drop_features(words: Sequence[Word]) -> list[Word]:
    """Drop adjectives that hold for every such toy. "White spotted" may describe the toy or its spots, so it is
    kept."""
    nouns = {word.value for word in words if word.kind == "noun"}
    return [
        word
        for place, word in enumerate(words)
        if not nouns or not nouns <= _HAS.get(word.text, frozenset()) or (place and words[place - 1].kind == "colour")
    ]


def _find_owner(parts: Sequence[LabelPart], place: int) -> LabelPart | None:
    """Return the part of the label whose toy a toy part belongs to: itself, the nearest before, or what it is on."""
    part = parts[place]
    at = _find_noun(part)
    if _find_spans(part, part):
        return part
    before = next((each for each in reversed(parts[:place]) if _find_noun(each) is not None), None)
    if before and part.joint in ("", "with"):
        return before if at is None or any(start <= at < end for start, end in _find_spans(part, before)) else None
    return parts[1] if place == 0 and at is None and len(parts) > 1 and parts[1].joint == "on" else None


def _find_noun(part: LabelPart) -> int | None:
    return next((place for place, word in enumerate(part.words) if word.kind == "noun"), None)


def _parts_of(owner: LabelPart) -> Mapping[str, ToyPart]:
    at = _find_noun(owner)
    return {} if at is None else TOY_PARTS.get(owner.words[at].value, {})


def _find_spans(part: LabelPart, owner: LabelPart) -> list[tuple[int, int]]:
    """Return the spans of words that name parts of the owner's toy, without the word that names the toy itself."""
    known, texts = _parts_of(owner), [word.text for word in part.words]
    toy = _find_noun(part) if part is owner else None
    found: list[tuple[int, int]] = []
    for start in range(len(texts)):
        for end in range(min(start + _MAX_WORDS, len(texts)), start, -1):
            free = (not found or start >= found[-1][1]) and not (toy is not None and start <= toy < end)
            if free and " ".join(texts[start:end]) in known:
                found.append((start, end))
                break
    return found


def _absorb(part: LabelPart, owner: LabelPart) -> None:
    """Remove parts of the owner's toy, with their correct adjectives, from a part of a label."""
    found: list[Word] = []
    for start, end in reversed(_find_spans(part, owner)):
        toy_part = _parts_of(owner)[" ".join(word.text for word in part.words[start:end])]
        first = start
        while first and part.words[first - 1].kind not in ("noun", "thing"):
            first -= 1
        said = part.words[first:start]
        colours = [word for word in said if word.kind == "colour" and word.value not in toy_part.adjectives]
        right = all({word.value, word.text} & toy_part.adjectives or word in colours for word in said)
        alone = part is not owner and not _names_more(part, first, end)
        if not right or not _may_colour(toy_part, colours, [*owner.words, *found]) or _is_torn(part, first, toy_part):
            continue
        if alone and part.count > toy_part.count:
            continue
        part.count = 1 if alone else part.count
        del part.words[first:end]
        found += colours
    if not any(word.kind == "colour" for word in owner.words):
        owner.words[:0] = found[:1]


def _names_more(part: LabelPart, first: int, end: int) -> bool:
    """True if a part of a label names a thing besides these words."""
    return any(word.kind in ("noun", "thing") for word in (*part.words[:first], *part.words[end:]))


def _may_colour(toy_part: ToyPart, colours: Sequence[Word], said_of_toy: Sequence[Word]) -> bool:
    """True if colours said of a part can be the toy's: there are none, or exactly one that does not contradict
    others."""
    said = {word.value for word in said_of_toy if word.kind == "colour"} - {word.value for word in colours}
    return not colours or (toy_part.own and len(colours) == 1 and not said)


def _is_torn(part: LabelPart, first: int, toy_part: ToyPart) -> bool:
    """True if a colour may belong to the toy or to its part: "red mushroom spots"."""
    return not toy_part.own and bool(first) and any(word.kind == "colour" for word in part.words[:first])
