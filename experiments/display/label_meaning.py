"""Decide if an image shows what a label says, if that can be known.

Toybox's grammar parses the label, and an image's scene tells what it shows. Otherwise words in titles are compared,
and pages make no claim.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from experiments.models import Image
from workers.errors import ToolMisuse
from workers.toybox.world.concepts import Concept, matches_any, read_whole
from workers.toybox.world.scenes import Scene


@dataclass(frozen=True)
class Meaning:
    """A fully parsed label: alternatives, of which an image shows at least one or none."""

    concepts: Sequence[Concept]

    def holds(self, scene: Scene) -> bool:
        return matches_any(self.concepts, scene)


def parse_label(label: str) -> Meaning | None:
    """Return the meaning; None unless every word of the label is understood."""
    concepts = read_whole(label)
    return Meaning(concepts) if concepts else None


def scenes(keys: Collection[str]) -> Mapping[str, Scene]:
    """Return the scenes of those images that toybox drew, by key; one query."""
    rows = Image.objects.filter(pk__in=set(keys), scene__isnull=False).values_list("pk", "scene")
    found: dict[str, Scene] = {}
    for key, data in rows:
        # A scene of another version counts as unknown.
        with suppress(ToolMisuse):
            found[key] = Scene.from_json(data)
    return found
