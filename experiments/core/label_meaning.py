"""What a label says of an image, where that can be known: toybox's grammar reads the label, and the scene that an image
was drawn from tells what it shows. Everything else, words in titles say, and pages then claim nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from experiments.models import Image
from workers.errors import ToolMisuse
from workers.toybox.world.concepts import Concept, matches_any, parse_label
from workers.toybox.world.scenes import Scene
from workers.toybox.world.words import Word, read_words

PLAIN = {"noun", "thing", "colour", "size", "ground", "light", "or", "stop"}
ARTICLES = {"a", "an", "any"}


@dataclass(frozen=True)
class Meaning:
    """A label that was read whole: alternatives, of which an image shows at least one or none."""

    concepts: Sequence[Concept]

    def holds(self, scene: Scene) -> bool:
        return matches_any(self.concepts, scene)


def meaning(label: str) -> Meaning | None:
    """None unless every word of the label is understood: counts, relations and what must be there together are not."""
    words = read_words(label)
    concepts = parse_label(label) if all(_is_plain(words, place) for place in range(len(words))) else ()
    return Meaning(concepts) if concepts else None


def _is_plain(words: Sequence[Word], place: int) -> bool:
    """Whether a word says something of one thing or of what is around it."""
    word = words[place]
    if word.kind == "count":
        return word.text in ARTICLES
    if word.kind == "relation":
        return word.text in {"on", "in"} and place + 1 < len(words) and words[place + 1].kind in {"ground", "stop"}
    if word.text in {",", "/", "|", ";"}:  # "stars, balls", but not "red, small balls"
        return _names_thing(words[:place]) and _names_thing(words[place + 1 :])
    return word.kind in PLAIN


def _names_thing(words: Sequence[Word]) -> bool:
    return any(word.kind in {"noun", "thing"} for word in words)


def scenes(keys: Collection[str]) -> Mapping[str, Scene]:
    """The scenes of those images that toybox drew, by key; one query."""
    rows = Image.objects.filter(pk__in=set(keys), scene__isnull=False).values_list("pk", "scene")
    found: dict[str, Scene] = {}
    for key, data in rows:
        with suppress(ToolMisuse):
            found[key] = Scene.from_json(data)
    return found
