"""Functions from a word to a number: how near it is in meaning to one concept, or to the nearer of two."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from workers.functions.black_box import Family, Truth
from workers.functions.words.topics import HELD_OUT, TOPICS, list_held_out, list_tried
from workers.functions.words.triplets import TRIPLETS, Triplet, shuffle_options
from workers.functions.words.typed import DOMAIN, check_words
from workers.sentences import Nearness

QUESTION = "Which of the three words would the function give the highest number?"
HINTS, _NEAR_HINTS = 10, 3
_TWO_SHARE = 0.3
"""Of functions with two concepts, as published: 60 of 200."""
_NEAREST, _GAP = 8, 0.15
"""Held-out words that the right options are drawn from, and by how much the others are farther at least."""


@dataclass(frozen=True)
class ConceptBox:
    """A function of words. See `BlackBox`."""

    key: str
    truth: Truth
    concepts: tuple[str, ...]
    nearness: Nearness
    family: Family = "concepts"
    question: str = QUESTION
    hints: tuple[str, ...] = ()
    """Given as they are where there are some; else drawn from the words of topics."""
    triplets: tuple[Triplet, ...] = ()
    """Likewise."""

    def call(self, inputs: Sequence[str], number: int = 0) -> list[float]:  # noqa: ARG002 there is no noise
        """Return a number from 0 to 1 for each input: the cosine of its meaning and that of the concept, 0 if negative,
        to three digits."""
        return self.evaluate(inputs)

    def evaluate(self, inputs: Sequence[str]) -> list[float]:
        """Return what `call` returns."""
        words = check_words(inputs)
        by_concept = [self.nearness.compare(concept, words) for concept in self.concepts]
        return [round(max(0.0, *map(float, each)), 3) for each in zip(*by_concept, strict=True)]

    def draw_held_out(self) -> list[str]:
        """None: descriptions are judged."""
        return []

    def draw_hints(self) -> list[str]:
        """Return 10 words, three of them of the concepts, as the published ones begin with."""
        if self.hints:
            return list(self.hints)
        rng = random.Random(f"{self.key}: hints")
        own = [word for concept in self.concepts for word in TOPICS[concept][:-HELD_OUT]]
        near = rng.sample(own, _NEAR_HINTS)
        words = [*near, *rng.sample([word for word in list_tried() if word not in own], HINTS - _NEAR_HINTS)]
        rng.shuffle(words)
        return words

    def draw_triplets(self) -> list[Triplet]:
        """Return the 10 choices that answers are judged on, by the key: a near word and two that are farther."""
        if self.triplets:
            return list(self.triplets)
        rng = random.Random(f"{self.key}: held out")
        words = list_held_out()
        value = dict(zip(words, self.evaluate(words), strict=True))
        # The word breaks ties, so that the order is the same everywhere
        ranked = sorted(words, key=lambda word: (-value[word], word))
        choices = [(near, [far for far in ranked if value[far] <= value[near] - _GAP]) for near in ranked[:_NEAREST]]
        # A network that tells hardly any words apart has none: then the two that are farthest
        known = [(near, far) for near, far in choices if len(far) > 1] or [(ranked[0], ranked[-2:])]
        drawn = [rng.choice(known) for _ in range(TRIPLETS)]
        return [shuffle_options(near, rng.sample(far, 2), rng) for near, far in drawn]


def create_concepts(seed: int, nearness: Nearness) -> ConceptBox:
    """Return the function of a seed."""
    key = f"concepts:{seed}"
    rng = random.Random(key)
    # `sample` gives two different topics
    concepts = tuple(rng.sample(list(TOPICS), 2 if rng.random() < _TWO_SHARE else 1))
    return ConceptBox(key, describe_concepts(concepts), concepts, nearness)


def describe_concepts(concepts: Sequence[str]) -> Truth:
    """Return what a function of these concepts is, in words and as code."""
    named = " or ".join(f"“{each}”" for each in concepts)
    which = ", whichever is nearer" if len(concepts) > 1 else ""
    code = f"def f(word):\n    return max(0, *(cosine(word, concept) for concept in {tuple(concepts)!r}))\n"
    return Truth(code, f"How near a word is in meaning to {named}{which}.", tuple(concepts), DOMAIN)


def conclude_concepts(seen: Mapping[str, float]) -> str:
    """Return a description by what was seen, where no topic was tried as a whole: the words with the highest
    numbers."""
    return describe_concepts(sorted(seen, key=lambda word: -seen[word])[:_NEAR_HINTS]).description


def study_concepts(call: Callable[[Sequence[str]], Sequence[float]]) -> tuple[str, str]:
    """Return the scripted baseline: it tries a list of words, and names the topics whose words get the highest numbers.

    Returns a description and a domain.
    """
    tried = list_tried()
    value = dict(zip(tried, call(tried), strict=True))
    # Means over the words of a topic: single words are near to others by chance
    means = {name: mean(value[word] for word in words[:-HELD_OUT]) for name, words in TOPICS.items()}
    first, second, third = sorted(means, key=lambda name: -means[name])[:3]
    # Two concepts: the gap after the second is larger than the gap before it
    are_two = means[second] - means[third] > means[first] - means[second]
    return describe_concepts((first, second) if are_two else (first,)).description, DOMAIN
