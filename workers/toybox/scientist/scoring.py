"""Score labels against trials: how well does a label separate the images that it describes from the others?

A label is a tuple of concepts joined by OR. Its measure is the AUC: the probability that an image it describes
exceeds one that it does not; ties count half. Half of it compares with hard negatives, half with all others, and
each alternative has equal weight. Uses activations and scenes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from workers.metrics.ranking import area_under_curve
from workers.toybox.scientist.trials import Trial, pair_edits
from workers.toybox.world.concepts import Concept
from workers.toybox.world.scenes import CHOICES, NOUNS

Label = tuple[Concept, ...]
Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

SINGLES = tuple(Concept().having({name: word}) for name, words in CHOICES.items() for word in words)
"""Every concept with one property."""

ENOUGH = 6
"""Images that a label must describe, and must not describe, for any statement about it."""
ALTERNATIVES = 3
NAMED = 3
"""Maximum number of properties in a concept of a label."""
_BEAM = 6
_PAIRS = 8
_PAIR_SEEN = 3
"""Minimum number of images with a pair of toys, to consider it."""
_ROUNDS = 4
_PRICE = 0.01
"""AUC that a label must gain for each property beyond the first."""
_DOUBT = 2.0
"""An AUC counts as if this many more described images had shown no difference."""


@dataclass(frozen=True)
class LabelScore:
    """The figures of a label over the trials. Means and spread are activations; an AUC may be NaN."""

    auc: float
    count: int
    mean: float
    spread: float
    others: int
    others_mean: float
    near: int
    near_mean: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} on average, n={self.count}, against {self.others_mean:.2f}, n={self.others}"

    @property
    def error(self) -> float:
        """Standard error of the AUC (Hanley and McNeil 1982)."""
        if math.isnan(self.auc) or not self.count or not self.others:
            return math.nan
        # Capped below 1: a perfect separation of few images would otherwise have no error at all
        a = min(max(self.auc, 1 - self.auc), 1 - 0.5 / min(self.count, self.others) ** 0.5)
        q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
        wide = (self.count - 1) * (q1 - a * a) + (self.others - 1) * (q2 - a * a)
        return math.sqrt((a * (1 - a) + wide) / (self.count * self.others))


class TrialEvidence:
    """Trials, arranged for scoring many labels quickly."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.trials = tuple(trials)
        self.activations = np.array([trial.activation for trial in trials], dtype=float)
        self._masks: dict[Concept, Mask] = {}

    def __len__(self) -> int:
        return len(self.trials)

    @cached_property
    def _things(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.str_]]]:
        """For each thing of all scenes: the number of its trial, and its words by property."""
        things = [(row, thing) for row, trial in enumerate(self.trials) for thing in trial.scene.things]
        words = {name: np.array([getattr(thing, name) for _, thing in things]) for name in ("noun", "colour", "size")}
        return np.array([row for row, _ in things], dtype=np.int64), words

    @cached_property
    def _around(self) -> dict[str, NDArray[np.str_]]:
        return {name: np.array([getattr(trial.scene, name) for trial in self.trials]) for name in ("ground", "light")}

    @cached_property
    def edited(self) -> NDArray[np.int64]:
        """The numbers of the original and the edited trial of each edit, (n, 2)."""
        # By identity: equal trials may occur twice
        places = {id(trial): row for row, trial in enumerate(self.trials)}
        found = [(places[id(old)], places[id(new)]) for old, new in pair_edits(self.trials)]
        return np.array(found, dtype=np.int64).reshape(-1, 2)

    def shows(self, concept: Concept) -> Mask:
        """Return which trials show a concept."""
        # Cached by concept: the search asks for the same concepts thousands of times
        if concept not in self._masks:
            shown = np.ones(len(self), dtype=bool)
            for name, words in self._around.items():
                # 1. Ground and light, of the whole scene
                if (word := getattr(concept, name)) is not None:
                    shown &= words == word
            if concept.about_things:
                rows, words_of = self._things
                # 2. All properties of a thing must be of the same thing, not spread over several
                fits = np.ones(len(rows), dtype=bool)
                for name, words in words_of.items():
                    if (word := getattr(concept, name)) is not None:
                        fits &= words == word
                there = np.zeros(len(self), dtype=bool)
                there[rows[fits]] = True
                shown &= there
            if concept.partner is not None:
                # 3. A cheap necessary condition first: the partner is there at all
                shown = shown & self.shows(replace(concept.partner, count=1))
            if concept.partner is not None or concept.count > 1:
                # 4. Counts and relations need the scene itself; only the rows that are left are asked
                for row in np.flatnonzero(shown):
                    shown[row] = concept.matches(self.trials[row].scene)
            self._masks[concept] = shown
        return self._masks[concept]

    def match_label(self, label: Iterable[Concept]) -> Mask:
        """Return which trials at least one alternative describes."""
        there = np.zeros(len(self), dtype=bool)
        for concept in label:
            there |= self.shows(concept)
        return there

    def nearly(self, label: Label) -> Mask:
        """Return which trials lack exactly one property of an alternative and match none."""
        return self.match_label(wider for each in label for wider in widen(each)) & ~self.match_label(label)

    def find_pairs(self, most: int) -> list[Concept]:
        """Return pairs of toys that go with high activations, highest mean first."""
        rows, words_of = self._things
        there = np.zeros((len(self), len(NOUNS)))
        for place, noun in enumerate(NOUNS):
            there[rows[words_of["noun"] == noun], place] = 1
        # Products of presence give all pairs at once: images with both toys, and the sum of their activations
        counts, sums = there.T @ there, there.T @ (there * self.activations[:, None])
        # The maximum avoids a division by 0 where the pair was never seen
        means = np.where(counts >= _PAIR_SEEN, sums / np.maximum(counts, 1), -np.inf)
        # Half of the table: pairs have no order here
        means[np.tril_indices(len(NOUNS))] = -np.inf
        best = [divmod(int(at), len(NOUNS)) for at in np.argsort(-means, axis=None)[:most]]
        # Fewer pairs than `most` may have been seen
        return [Concept(NOUNS[one], partner=Concept(NOUNS[two])) for one, two in best if means[one, two] > -np.inf]

    def auc(self, label: Label) -> float:
        """Return the AUC of a label; see the module. NaN if an alternative was never shown, or nothing else was."""
        others = ~self.match_label(label)
        near = self.nearly(label)
        # Too few hard negatives say nothing: all others take their place
        near = near if near.sum() >= 3 else others
        found = []
        for concept in label:
            shown = self.activations[self.shows(concept)]
            found += [area_under_curve(shown, self.activations[rest]) for rest in (near, others)]
        return float(np.mean(found)) if found else math.nan

    def correlate(self, label: Label) -> float:
        """Return Pearson's r of the activation with whether the label describes the image; 0 if either is constant."""
        described = self.match_label(label)
        share, spread = float(described.mean()), float(self.activations.std())
        if not 0 < share < 1 or not spread:
            return 0.0
        gap = float(self.activations[described].mean() - self.activations[~described].mean())
        # Pearson's r of a yes-or-no variable (point-biserial): the gap of the means times the spread of the shares
        return gap * math.sqrt(share * (1 - share)) / spread

    def measure(self, label: Label) -> LabelScore:
        """Return everything the trials say about a label."""
        described, near = self.match_label(label), self.nearly(label)
        shown, rest, close = self.activations[described], self.activations[~described], self.activations[near]
        spread = float(shown.std(ddof=1)) if len(shown) > 1 else math.nan
        return LabelScore(
            self.auc(label), len(shown), _mean(shown), spread, len(rest), _mean(rest), len(close), _mean(close)
        )

    def worth(self, label: Label) -> float:
        """Return the mean of AUC and correlation minus the price of long labels; -1 if it cannot be computed.

        The AUC asks if described images are bright, the correlation if bright images are described.
        """
        # The rarest alternative limits the trust in the whole
        fewest = min(int(self.shows(each).sum()) for each in label)
        seen = self.auc(label)
        if math.isnan(seen):
            return -1.0
        # With few images AUC and correlation are shrunk towards chance, so that rarely seen concepts are doubted
        trust = fewest / (fewest + _DOUBT)
        return 0.5 + (seen - 0.5 + self.correlate(label)) / 2 * trust - _PRICE * (sum(map(_count_said, label)) - 1)


def search_labels(evidence: TrialEvidence, hints: Iterable[Concept]) -> list[Label]:
    """Return labels, best first: the best single properties, narrowed and joined step by step while that helps."""
    worth: dict[Label, float] = {}

    def weigh(labels: Iterable[Label]) -> None:
        # Each label once: the beam proposes the same label by several ways
        worth.update((label, evidence.worth(label)) for label in set(labels) - set(worth))

    # 1. Start with what has one property, what the exemplars suggest, and pairs seen together
    weigh((single,) for single in (*SINGLES, *hints, *evidence.find_pairs(_PAIRS)))
    # 2. Only good concepts are joined: all combinations would be far too many
    joinable = [label[0] for label in _best(worth, 2 * _BEAM)]
    for _ in range(_ROUNDS):
        known = len(worth)
        beam = _best(worth, _BEAM)
        weigh(longer for label in beam for longer in _list_longer(label, joinable))
        concepts = {each for label in _best(worth, _BEAM) for each in label}
        # Sorted: a set's order changes from process to process, and the reply must follow from the seed
        joinable += sorted(concepts - set(joinable), key=repr)
        # 3. Stop when a round brings no new label
        if len(worth) == known:
            break
    return _best(worth, len(worth))


def _best(worth: dict[Label, float], count: int) -> list[Label]:
    # `repr` breaks ties the same way everywhere
    return sorted(worth, key=lambda label: (-worth[label], repr(label)))[:count]


def _list_longer(label: Label, joinable: Iterable[Concept]) -> Iterable[Label]:
    """Yield labels one step from this one: an alternative more or less, a property more or less."""
    # 1. One alternative less
    if len(label) > 1:
        yield from (label[:place] + label[place + 1 :] for place in range(len(label)))
    # 2. One alternative more
    if len(label) < ALTERNATIVES:
        yield from (normalize_label((*label, concept)) for concept in joinable)
    # 3. Each alternative with a property, a partner or a thing more or less
    for place, concept in enumerate(label):
        unnamed = [name for name in CHOICES if name not in concept.named] if len(concept.named) < NAMED else []
        changes: list[tuple[str, str | None]] = [(name, word) for name in unnamed for word in CHOICES[name]]
        changes += [(name, None) for name in concept.named] if len(concept.named) > 1 else []
        others = [concept.having({name: word}) for name, word in changes]
        others += (
            [replace(concept, partner=None, relation="with")] if concept.partner else _list_pairs(concept, joinable)
        )
        others += [replace(concept, count=concept.count + step) for step in (-1, 1) if 1 <= concept.count + step <= 3]
        for other in others:
            yield normalize_label((*label[:place], other, *label[place + 1 :]))


def _list_pairs(concept: Concept, joinable: Iterable[Concept]) -> list[Concept]:
    """Return the concept with each of the others beside it, if both are about one thing."""
    # Ground and light belong to the scene, so the first of the pair says them
    beside = [each.having({"ground": None, "light": None}) for each in joinable if each.partner is None]
    return [
        replace(concept, partner=each)
        for each in beside
        # Two of the same noun are said by a count
        if concept.noun and each.noun and each.noun != concept.noun and each.count == 1
    ]


def widen(concept: Concept) -> list[Concept]:
    """Return every concept that says one thing less: without a property, one of a pair alone, one thing fewer,
    unrelated.

    For a pair, also those in which the partner says one thing less.
    """
    found = [concept.having({name: None}) for name in concept.named]
    if concept.count > 1:
        found.append(replace(concept, count=concept.count - 1))
    if concept.partner:
        # The partner alone keeps the ground and light, which the first said for both
        around = {"ground": concept.ground, "light": concept.light}
        found += [replace(concept, partner=None, relation="with"), concept.partner.having(around)]
        found += [replace(concept, relation="with")] if concept.relation != "with" else []
        found += [replace(concept, partner=each) for each in widen(concept.partner)]
    # A concept that says nothing describes everything
    return [each for each in found if each.said]


def _count_said(concept: Concept) -> int:
    """Return how many things a concept says; for a partner, each property counts."""
    return len(concept.said) + (len(concept.partner.named) - 1 if concept.partner else 0)


def normalize_label(label: Label) -> Label:
    """Return the alternatives in a fixed order, without those that another includes. Alternatives that exhaust a
    property are merged."""
    whole = set(label)
    for concept in label:
        # Few alternatives exhaust a property of few words alone
        for name in (each for each in concept.named if len(CHOICES[each]) <= len(label)):
            every = {concept.having({name: word}) for word in CHOICES[name]}
            # At least one property must be left
            if every <= whole and len(concept.said) > 1:
                whole = whole - every | {concept.having({name: None})}
    kept = [each for each in whole if not any(each != other and includes(other, each) for other in whole)]
    # `repr` gives an order that does not depend on the hash seed
    return tuple(sorted(kept, key=repr))


def includes(wide: Concept, narrow: Concept) -> bool:
    """True if the wide concept describes everything that the narrow one describes."""
    # "with" includes every relation, not the other way round
    if wide.partner and (not narrow.partner or wide.relation not in ("with", narrow.relation)):
        return False
    if wide.partner and narrow.partner and not includes(wide.partner, narrow.partner):
        return False
    return wide.count <= narrow.count and all(getattr(wide, name) == getattr(narrow, name) for name in wide.named)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan
