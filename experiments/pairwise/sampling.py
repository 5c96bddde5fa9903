"""Which pairs a trial has: each two sources of each unit once, a share of them shown again later and the other way
round, and some whose answer is known: the label of a unit against what the same source says of another one.

PlannedPair by a seed: the same labels, options and seed give the same pairs. What is left out is counted, with why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

from experiments.models.pairwise import PairKind
from experiments.pairwise.sources import LabelsBySource, SourceLabel

GAP = 10
"""Pairs, at least, between a pair and its repetition, as far as there are so many."""
TRIES = 50
"""Other units that are looked at for a label that says something else."""
ONE_SOURCE = "units with labels of only one of the sources"
SAME_WORDS = "comparisons of labels that say the same"
NOTHING_TO_SEE = "units without exemplars yet, and without a known truth"
TOO_MANY = "comparisons beyond the number asked for, left out at random"


@dataclass(frozen=True)
class PlannedPair:
    """One pair. `original` is the index, in the whole plan, of the pair that it repeats."""

    kind: PairKind
    unit: int
    sources: tuple[str, str]
    labels: tuple[SourceLabel, SourceLabel]
    original: int | None = None


@dataclass(frozen=True)
class PairPlan:
    """All pairs in the order in which they are judged, and what is not among them."""

    pairs: Sequence[PlannedPair]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def count(self, kind: str) -> int:
        return sum(pair.kind == kind for pair in self.pairs)


@dataclass(frozen=True)
class TrialOptions:
    """What somebody wants of a trial."""

    sources: Sequence[str]
    most: int
    known_answer_share: float
    repeat_share: float
    seed: int


def plan_pairs(asked: TrialOptions, said: LabelsBySource, seen: frozenset[int]) -> PairPlan:
    """The pairs of a trial. `seen` are the units that there is something to show of."""
    rng = Random(f"trial {asked.seed}")
    shown = {unit: sources for unit, sources in sorted(said.items()) if unit in seen}
    # Each two of the sources, wherever both say something
    possible = [
        PlannedPair(PairKind.PLAIN, unit, (a, b), (known[a], known[b]))
        for unit, known in shown.items()
        for a, b in combinations([source for source in asked.sources if source in known], 2)
    ]
    different = [pair for pair in possible if not _is_same(*pair.labels)]
    chosen = rng.sample(different, min(asked.most, len(different)))
    checks = _known_answers(shown, asked.sources, round(asked.known_answer_share * len(chosen)), rng)
    once = [*chosen, *checks]
    rng.shuffle(once)
    left_out = {
        ONE_SOURCE: sum(len(sources) == 1 for sources in said.values()),
        NOTHING_TO_SEE: sum(len(sources) > 1 and unit not in seen for unit, sources in said.items()),
        SAME_WORDS: len(possible) - len(different),
        TOO_MANY: len(different) - len(chosen),
    }
    repeated = round(asked.repeat_share * len(chosen))
    return PairPlan(_with_repeats(once, repeated, rng), {why: n for why, n in left_out.items() if n})


def _known_answers(said: LabelsBySource, sources: Sequence[str], count: int, rng: Random) -> list[PlannedPair]:
    """Labels against what the same source says of another unit, so that its manner gives nothing away."""
    of_source = {source: [unit for unit, known in said.items() if source in known] for source in sources}
    places = [(unit, source) for source, units in of_source.items() for unit in units]
    rng.shuffle(places)
    found: list[PlannedPair] = []
    for unit, source in places:
        if len(found) == count:
            break
        others = rng.sample(of_source[source], min(TRIES, len(of_source[source])))
        own = said[unit].values()
        wrong = (said[other][source] for other in others if other != unit)
        if other := next((each for each in wrong if not any(_is_same(each, mine) for mine in own)), None):
            found.append(PlannedPair(PairKind.KNOWN, unit, (source, source), (said[unit][source], other)))
    return found


def _is_same(one: SourceLabel, other: SourceLabel) -> bool:
    """Whether two labels differ in nothing but case, spaces and a full stop."""
    a, b = (" ".join(each.text.casefold().split()).rstrip(".") for each in (one, other))
    return a == b


def _with_repeats(once: Sequence[PlannedPair], count: int, rng: Random) -> list[PlannedPair]:
    """The pairs with some plain ones again, each a good way after its first time."""
    plains = [pair for pair in once if pair.kind == PairKind.PLAIN]
    order: list[tuple[PlannedPair, bool]] = [(pair, False) for pair in once]
    for pair in rng.sample(plains, min(count, len(plains))):
        first = order.index((pair, False))
        place = rng.randint(min(first + 1 + GAP, len(order)), len(order))
        order.insert(place, (pair, True))
    firsts = {id(pair): place for place, (pair, again) in enumerate(order) if not again}
    return [
        PlannedPair(PairKind.REPEAT, pair.unit, pair.sources, pair.labels, firsts[id(pair)]) if again else pair
        for pair, again in order
    ]
