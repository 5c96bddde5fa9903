"""What the exemplars suggest: which words their descriptions share more often than chance would have it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from workers.backbones.scripted_scientist.weighing import CHOICES
from workers.toybox.concepts import Concept
from workers.toybox.scenes import Scene

_AT_LEAST = 3


def suggested(scenes: Sequence[Scene]) -> list[tuple[Concept, int]]:
    """Concepts of one or two properties, or a whole kind of thing, that the scenes share, most surprising first.

    Each with the number of scenes that show it. Surprise is the standardised excess over evenly dealt words.
    """
    counts = Counter(concept for scene in scenes for concept in set(_concepts(scene)))
    things = sum(len(scene.things) for scene in scenes) / max(1, len(scenes))

    def surprise(concept: Concept) -> float:
        chance = math.prod(1 / len(CHOICES[name]) for name in concept.named)
        if concept.about_things:
            chance = 1 - (1 - chance) ** max(1.0, things)
        expected = chance * len(scenes)
        return (counts[concept] - expected) / math.sqrt(expected * (1 - chance))

    likely = [concept for concept, count in counts.items() if count >= _AT_LEAST and surprise(concept) > 2]
    return [(concept, counts[concept]) for concept in sorted(likely, key=lambda each: (-surprise(each), repr(each)))]


def _concepts(scene: Scene) -> Iterator[Concept]:
    around = {"ground": scene.ground, "light": scene.light}
    yield from _subsets(around, (1, 2))
    for thing in scene.things:
        words = {"noun": thing.noun, "colour": thing.colour, "size": thing.size}
        yield Concept(**words)
        yield from _subsets(words | around, (1, 2))


def _subsets(words: dict[str, str], sizes: Iterable[int]) -> Iterator[Concept]:
    for size in sizes:
        for names in itertools.combinations(words, size):
            yield Concept(**{name: words[name] for name in names})
