"""Make a label testable: whether a scene shows what it says, and prompts that toybox draws completely.

Uses only the label, never a unit, a run or an image. Called by judges of labels.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

from workers.errors import RequestError
from workers.record.label_checks import LabelReading
from workers.toybox.world.concepts import Concept, matches_any, parse_label, phrase_label
from workers.toybox.world.label_grammar import find_unread
from workers.toybox.world.prompts import caption, write_related
from workers.toybox.world.scenes import Scene, random_scene

_TRIES = 200
_COMMON = 0.95
"""Share of random scenes above which a label describes nearly everything."""


@dataclass(frozen=True)
class ReadLabel:
    """A label that can be tested."""

    text: str
    concepts: tuple[Concept, ...]
    """Alternatives: at least one, and each describes something."""

    def is_present(self, scene: Scene) -> bool:
        """True if the scene shows what the label says, exactly."""
        return matches_any(self.concepts, scene)

    @property
    def about_things(self) -> bool:
        """True if every alternative describes things and not only ground or light."""
        return all(each.about_things for each in self.concepts)

    def find_shown(self, scene: Scene) -> set[int]:
        """Return the positions in the scene of the things that it describes, without what they are on or beside."""
        return {place for each in self.concepts for place in each.find_shown(scene)}

    def positive_scenes(self, count: int, seed: int) -> list[Scene]:
        """Draw scenes that it describes, spread evenly over its alternatives. Everything it leaves open varies.

        The same label and seed give the same scenes, as in the methods below.
        """
        # A name for each purpose: the same seed must not give related scenes
        rng = self._rng("positive", seed)
        return [self.concepts[place % len(self.concepts)].sample(rng) for place in range(count)]

    def near_scenes(self, count: int, seed: int) -> list[Scene]:
        """Draw scenes that lack one thing that an alternative says, and that none describes."""
        rng = self._rng("near", seed)
        return [self._outside(self.concepts[place % len(self.concepts)].hard_negative, rng) for place in range(count)]

    def neutral_scenes(self, count: int, seed: int) -> list[Scene]:
        """Draw random scenes that it does not describe."""
        rng = self._rng("neutral", seed)
        return [self._outside(random_scene, rng) for _ in range(count)]

    def positive_prompts(self, count: int, seed: int) -> list[str]:
        """Write captions of `positive_scenes`, which toybox's generator draws completely; a relation is stated too."""
        scenes = self.positive_scenes(count, seed)
        return [self._write(scene) for scene in scenes]

    def neutral_prompts(self, count: int, seed: int) -> list[str]:
        """Write captions of `neutral_scenes`."""
        return [caption(scene) for scene in self.neutral_scenes(count, seed)]

    def _write(self, scene: Scene) -> str:
        """Describe the scene; a thing that must be beside another is mentioned first."""
        # `caption` does not say left and right; a label with a side needs it
        pair = next((found for each in self._sided if (found := each.find_pair(scene))), None)
        return write_related(scene, *pair) if pair else caption(scene)

    @cached_property
    def _sided(self) -> tuple[Concept, ...]:
        return tuple(each for each in self.concepts if each.partner and each.relation in ("left", "right"))

    def _rng(self, purpose: str, seed: int) -> random.Random:
        return random.Random(f"{purpose} scenes of {self.text} {seed}")

    def _outside(self, draw: Callable[[random.Random], Scene], rng: random.Random) -> Scene:
        # A label that describes nearly all scenes never leaves this loop otherwise
        for _ in range(_TRIES):
            scene = draw(rng)
            if not self.is_present(scene):
                return scene
        raise _refuse_common(self.text)


def describe_reading(text: str) -> LabelReading:
    """Describe how toybox reads a label, whether or not it can be tested."""
    return LabelReading(phrase_label(parse_label(text)), find_unread(text))


def read_label(text: str) -> ReadLabel:
    """Return the label, ready for testing.

    Raises RequestError with the reason and the remedy if it has nothing testable, or a word that is not
    understood, or describes what no scene can contain, or nearly every scene.
    """
    # 1. Words that are not understood
    concepts, unread = parse_label(text), find_unread(text)
    if unread:
        raise RequestError(
            f"The label {text!r} cannot be tested. {describe_reading(text).words} Name things with size, colour, "
            "ground and light, how many there are at least, and one other thing that is there too or that they stand "
            "on or beside; join alternatives by OR."
        )
    # 2. Nothing to look for
    if not concepts:
        raise RequestError(
            f"The label {text!r} names nothing that can be tested. Name toys, colours, grounds or lights."
        )
    # 3. A label that is true of nearly everything has no neutral scenes
    found, rng = ReadLabel(text, concepts), random.Random(f"how common is {text}")
    if sum(map(found.is_present, _draw_any_scenes())) >= _COMMON * _TRIES:
        raise _refuse_common(text)
    # 4. Each alternative must be drawable
    for concept in concepts:
        _require_scene(text, concept, rng)
    return found


@cache
def _draw_any_scenes() -> tuple[Scene, ...]:
    """Draw the same scenes for every label: composing them takes fifty times as long as reading a label."""
    rng = random.Random("how common a label is")
    return tuple(random_scene(rng) for _ in range(_TRIES))


def _require_scene(text: str, concept: Concept, rng: random.Random) -> None:
    """Raise RequestError unless toybox can draw what the concept says."""
    if concept.relation in ("left", "right") and concept.partner and concept.count + concept.partner.count > 2:
        raise RequestError(f"The label {text!r} cannot be tested: toybox draws one thing beside one. Leave counts out.")
    try:
        concept.sample(rng)
    except ValueError as error:
        raise RequestError(f"The label {text!r} cannot be tested. {error}") from error


def _refuse_common(text: str) -> RequestError:
    return RequestError(f"The label {text!r} describes nearly everything, so no scene lies outside it. Narrow it.")
