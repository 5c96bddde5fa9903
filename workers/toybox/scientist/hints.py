"""What the exemplars suggest: which words their descriptions share more often than chance would have it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from workers.toybox.world.concepts import Concept
from workers.toybox.world.scenes import CHOICES, Scene

_AT_LEAST = 3
_CLEAR = 3.0
"""Nats of surprise from which a concept is worth a mention."""


def suggest_concepts(scenes: Sequence[Scene]) -> list[tuple[Concept, int]]:
    """Concepts of one or two properties, or a whole kind of thing, that the scenes share, most surprising first.

    Each with the number of scenes that show it.
    """
    counts = Counter(concept for scene in scenes for concept in set(_concepts(scene)))
    things = max(1.0, sum(len(scene.things) for scene in scenes) / max(1, len(scenes)))
    surprise = {concept: _measure_surprise(concept, count, len(scenes), things) for concept, count in counts.items()}
    likely = [concept for concept, count in counts.items() if count >= _AT_LEAST and surprise[concept] > _CLEAR]
    return [(concept, counts[concept]) for concept in sorted(likely, key=lambda each: (-surprise[each], repr(each)))]


def _measure_surprise(concept: Concept, count: int, scenes: int, things: float) -> float:
    """How much likelier so many scenes make their own share than the share that evenly dealt words would have, in nats.

    0 for a share that is no higher (Kullback-Leibler divergence of two coins, times the number of scenes).
    """
    chance = math.prod(1 / len(CHOICES[name]) for name in concept.named)
    if concept.about_things:
        chance = 1 - (1 - chance) ** things
    share = count / scenes
    if share <= chance:
        return 0.0
    rest = (1 - share) * math.log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return scenes * (share * math.log(share / chance) + rest)


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
