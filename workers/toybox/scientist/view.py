"""The scientist's view of a case: scored trials, ranked hints and labels, and the rng for the next design."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from workers.toybox.scientist.idle import remove_idle_parts
from workers.toybox.scientist.reading import ConversationState
from workers.toybox.scientist.scoring import (
    ALTERNATIVES,
    ENOUGH,
    Label,
    LabelScore,
    TrialEvidence,
    normalize_label,
    search_labels,
)
from workers.toybox.scientist.trials import read_exemplars, read_trials
from workers.toybox.world.concepts import Concept, parse_label, phrase_label
from workers.toybox.world.scenes import CHOICES, NOUNS, Scene

ATTEMPTS = 2
"""Maximum attempts of a failing step."""
_AT_LEAST = 3
_UNCOVERED = 0.2
"""Maximum share of the exemplars that a label may leave unexplained."""
_OFTEN = 0.5
"""Minimum share of exemplars with a toy outside their bright regions, for it to be a possible condition."""
_PARED = 60
"""Number of best labels to pare."""
_BRIGHT = 3
"""Minimum number of bright images for a result."""
_CLEAR = 3.0
"""Minimum surprise in nats for mentioning a concept."""


@dataclass(frozen=True)
class ScientistView:
    """The case, and what follows from it. The same case and seed give the same view."""

    case: ConversationState
    seed: int

    @cached_property
    def evidence(self) -> TrialEvidence:
        return TrialEvidence(read_trials(self.case))

    @cached_property
    def tests(self) -> dict[Label, TrialEvidence]:
        """Tested labels, each with the test trials drawn since then. It was chosen without them."""
        tested: dict[Label, TrialEvidence] = {}
        trials = [each for each in self.evidence.trials if each.step == "validate"]
        for report in (each for each in self.case.reports if each.step == "validate"):
            # A test of a label counts images drawn from its own experiment on: it was chosen by earlier ones
            since = [each for each in trials if each.experiment >= report.number]
            for note in report.notes:
                label = normalize_label(parse_label(note))
                # Notes are words of any author: only a label in the exact form of `phrase_label` was tested
                if label and phrase_label(label) == note:
                    tested.setdefault(label, TrialEvidence(since))
        return tested

    def tested(self, label: Label) -> LabelScore | None:
        """Return the test results of a label; None if it was not tested, or too little was seen."""
        found = self.tests[label].measure(label) if label in self.tests else None
        return found if found and min(found.count, found.others) >= ENOUGH else None

    @cached_property
    def exemplars(self) -> list[tuple[Scene, float]]:
        return read_exemplars(self.case)

    @cached_property
    def hints(self) -> list[tuple[Concept, int]]:
        """The concepts that exemplars share, with the number of exemplars that do."""
        return suggest_concepts([scene for scene, _ in self.exemplars])

    @cached_property
    def around(self) -> dict[str, float]:
        """The toys outside the bright regions of the exemplars, with the share of exemplars that show each there."""
        return read_around(
            " ".join(note for each in self.case.reports if each.step == "exemplars" for note in each.notes)
        )

    @cached_property
    def suggested(self) -> Label:
        """The label that the exemplars alone suggest."""
        return suggest_label([scene for scene, _ in self.exemplars], self.around)

    @property
    def quiet(self) -> bool:
        """True if nothing drawn so far came near the best exemplar; without exemplars, if no image is outstanding."""
        activations = self.evidence.activations
        if not len(activations):
            return True
        best = max((activation for _, activation in self.exemplars), default=math.nan)
        if math.isnan(best):
            # Activations have two decimals; this only absorbs rounding
            return float(activations.max() - activations.min()) < 1e-9
        floor = float(np.median(activations))
        # Half way from the usual to the best exemplar counts as bright
        bright = activations > floor + (best - floor) / 2
        return int(bright.sum()) < _BRIGHT

    @cached_property
    def labels(self) -> list[Label]:
        """Labels worth considering, best first. Before anything is drawn, what the exemplars suggest."""
        hints = [concept for concept, _ in self.hints]
        if not len(self.evidence):
            suggested = [self.suggested] if self.suggested else []
            return list(dict.fromkeys((*suggested, *(normalize_label((concept,)) for concept in hints))))
        found = search_labels(self.evidence, [*hints, *self.suggested, *self.pairs])
        # 1. Pairs in the order that the exemplars show
        oriented = dict.fromkeys(normalize_label(tuple(map(self._orient, label))) for label in found)
        # 2. Idle parts removed: only from the best, since each takes many comparisons
        return list(dict.fromkeys(remove_idle_parts(label, self.evidence) for label in list(oriented)[:_PARED]))

    @cached_property
    def pairs(self) -> list[Concept]:
        """Toys in the bright regions with toys often outside them: conditions that the exemplars suggest."""
        # The first two of both: hints come by surprise, the summary by frequency
        inside = [concept for concept, _ in self.hints if concept.named == ("noun",)][:2]
        beside = [noun for noun, share in self.around.items() if share >= _OFTEN][:2]
        return [replace(one, partner=Concept(noun)) for one in inside for noun in beside if noun != one.noun]

    def _orient(self, concept: Concept) -> Concept:
        """Return a pair with the thing in the bright regions of the exemplars first, because it gives the value."""
        # A relation or a count fixes the roles already
        if concept.partner is None or concept.relation != "with" or concept.count + concept.partner.count > 2:
            return concept
        first, second = (
            sum(count for hint, count in self.hints if hint == Concept(each))
            for each in (concept.noun, concept.partner.noun)
        )
        if second <= first:
            return concept
        around = {"ground": concept.ground, "light": concept.light}
        alone = replace(concept, partner=None).having(dict.fromkeys(around))
        return replace(concept.partner.having(around), partner=alone)

    @property
    def silent(self) -> bool:
        """True if the unit never responded: no exemplars, and the same activation for everything drawn."""
        activations = self.evidence.activations
        return not self.exemplars and len(activations) > 0 and float(activations.max() - activations.min()) < 1e-9

    def rng(self, step: str) -> random.Random:
        """Return the rng for the design of a step. Each attempt has a different one."""
        # With the attempt in the seed, a repeated step shows other images
        return random.Random(f"scripted scientist {self.seed} {step} {self.case.tried(step)}")

    def due(self, step: str, times: int = 1) -> bool:
        """True if a step is not done and has not failed too often."""
        return self.case.done(step) < times and self.case.tried(step) - self.case.done(step) < ATTEMPTS

    def fewer(self, step: str, count: int) -> int:
        """Return the count, or half of it after a failure."""
        # A failure may be a limit on time or images
        return count if self.case.tried(step) == self.case.done(step) else max(1, count // 2)


def read_around(summary: str) -> dict[str, float]:
    """Return the toys outside the bright regions in a summary of masked images, with the share of images."""
    _, _, outside = summary.partition("Outside the bright regions: ")
    found = re.findall(r"(\d+) of (\d+) show a (\w+)", outside)
    return {noun: int(count) / int(total) for count, total, noun in found if noun in NOUNS}


def suggest_label(scenes: Sequence[Scene], around: Mapping[str, float]) -> Label:
    """Return what exemplars alone suggest: as few alternatives as cover most of them, with the toy that is `around`
    them."""
    rest = list(scenes)
    found: list[Concept] = []
    while rest and len(found) < ALTERNATIVES and len(rest) > _UNCOVERED * len(scenes):
        shared = suggest_concepts(rest)
        # Prefer concepts that nearly all of them share; else one about things, since every scene has some ground
        covering = [concept for concept, count in shared if count >= (1 - _UNCOVERED) * len(rest)] or [
            concept for concept, _ in shared if concept.about_things
        ]
        if not covering:
            break
        found.append(covering[0])
        rest = [scene for scene in rest if not covering[0].matches(scene)]
    # A toy beside nearly all exemplars is a condition
    beside = [noun for noun, share in around.items() if share >= 1 - _UNCOVERED]
    if len(found) == 1 and found[0].noun and not found[0].partner and beside:
        found = [replace(found[0], partner=Concept(beside[0]))]
    return normalize_label(tuple(found))


def suggest_concepts(scenes: Sequence[Scene]) -> list[tuple[Concept, int]]:
    """Return concepts of one or two properties, or of a whole kind of thing, that the scenes share, most surprising
    first.

    Each comes with the number of scenes that show it.
    """
    counts = Counter(concept for scene in scenes for concept in set(_concepts(scene)))
    things = max(1.0, sum(len(scene.things) for scene in scenes) / max(1, len(scenes)))
    surprise = {concept: _measure_surprise(concept, count, len(scenes), things) for concept, count in counts.items()}
    likely = [concept for concept, count in counts.items() if count >= _AT_LEAST and surprise[concept] > _CLEAR]
    # `repr` breaks ties the same way in every process
    return [(concept, counts[concept]) for concept in sorted(likely, key=lambda each: (-surprise[each], repr(each)))]


def _measure_surprise(concept: Concept, count: int, scenes: int, things: float) -> float:
    """Return how much likelier this many scenes are under their own share than under evenly dealt words, in nats.

    0 for a share that is no higher (Kullback-Leibler divergence of two coins, times the number of scenes).
    """
    # 1. The chance that evenly dealt words give this concept
    chance = math.prod(1 / len(CHOICES[name]) for name in concept.named)
    if concept.count > 1:
        # Several of a kind: in any of the places that a scene has
        most = max(round(things) + 1, concept.count)
        chance = min(1.0, math.comb(most, concept.count) * chance**concept.count)
    elif concept.about_things:
        # In at least one of the things
        chance = 1 - (1 - chance) ** things
    share = count / scenes
    # 2. The divergence: 0 if it is not more frequent than chance
    if share <= chance:
        return 0.0
    rest = (1 - share) * math.log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return scenes * (share * math.log(share / chance) + rest)


def _concepts(scene: Scene) -> Iterator[Concept]:
    around = {"ground": scene.ground, "light": scene.light}
    yield from _one_or_two(around)
    for noun, count in Counter(thing.noun for thing in scene.things).items():
        # One is said by the noun alone, and `count` goes up to three
        if 1 < count < 4:
            yield Concept(noun, count=count)
    for thing in scene.things:
        words = {"noun": thing.noun, "colour": thing.colour, "size": thing.size}
        yield Concept().having(words)
        yield from _one_or_two(words | around)


def _one_or_two(words: dict[str, str]) -> Iterator[Concept]:
    """Yield the concepts of one or two of these properties."""
    for names in (*itertools.combinations(words, 1), *itertools.combinations(words, 2)):
        yield Concept().having({name: words[name] for name in names})
