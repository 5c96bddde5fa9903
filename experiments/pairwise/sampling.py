"""Draws the pairs of a trial.

Each pair of sources of a unit appears once. A share of the pairs is repeated later in the opposite order. Attention
checks have a known answer: the label of a unit against a label of another unit from the same source. The same
labels, options and seed give the same pairs. Comparisons left out are counted by reason.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from itertools import combinations
from random import Random

from experiments.models import Pair, PairKind, PairwiseTrial
from experiments.pairwise.sources import LabelsBySource, SourceLabel

GAP = 10
"""Minimum number of pairs between a pair and its repetition, if there are so many."""
TRIES = 50
"""Other units to try for a label that says something else."""
ONE_SOURCE = "units with labels of only one of the sources"
SAME_WORDS = "comparisons of labels that say the same"
NOTHING_TO_SEE = "units without exemplars yet, and without a known truth"
TOO_MANY = "comparisons beyond the number asked for, left out at random"


def plan_pairs(trial: PairwiseTrial, most: int, said: LabelsBySource, seen: Collection[int]) -> list[Pair]:
    """Return the pairs of a new trial in judging order, at most `most` per two sources, and set `trial.left_out`.

    `seen` are the units that have something to show.
    """
    # 1. Every possible comparison, in a fixed order.
    rng = Random(f"trial {trial.seed}")
    shown = {unit: sources for unit, sources in sorted(said.items()) if unit in seen}
    # Each two of the sources, wherever both say something
    possible = [
        (unit, (a, b), (known[a], known[b]))
        for unit, known in shown.items()
        for a, b in combinations([source for source in trial.sources if source in known], 2)
    ]
    # `rng` is drawn from in a fixed order, so that a seed gives the same pairs again
    different = [each for each in possible if not _is_same(*each[2])]
    # 2. The pairs, drawn at random; then the attention checks among them.
    chosen = [_make_pair(PairKind.PLAIN, *each) for each in rng.sample(different, min(most, len(different)))]
    checks = _list_known_pairs(shown, trial.sources, round(trial.known_answer_share * len(chosen)), rng)
    pairs = [*chosen, *checks]
    rng.shuffle(pairs)
    # 3. What was left out, by reason; then the repetitions.
    left_out = {
        ONE_SOURCE: sum(len(sources) == 1 for sources in said.values()),
        NOTHING_TO_SEE: sum(len(sources) > 1 and unit not in seen for unit, sources in said.items()),
        SAME_WORDS: len(possible) - len(different),
        TOO_MANY: len(different) - len(chosen),
    }
    trial.left_out = {why: count for why, count in left_out.items() if count}
    _add_repeats(pairs, round(trial.repeat_share * len(chosen)), rng)
    return pairs


def _make_pair(kind: PairKind, unit: int, sources: tuple[str, str], labels: tuple[SourceLabel, SourceLabel]) -> Pair:
    (source_a, source_b), (a, b) = sources, labels
    sides = {"text_a": a.text, "text_b": b.text, "label_a_id": a.label, "label_b_id": b.label}
    return Pair(kind=kind, unit_id=unit, source_a=source_a, source_b=source_b, **sides)


def _list_known_pairs(said: LabelsBySource, sources: Sequence[str], count: int, rng: Random) -> list[Pair]:
    """Return pairs of a label and a label of another unit from the same source, so that the style reveals nothing."""
    of_source = {source: [unit for unit, known in said.items() if source in known] for source in sources}
    places = [(unit, source) for source, units in of_source.items() for unit in units]
    rng.shuffle(places)
    found: list[Pair] = []
    for unit, source in places:
        if len(found) == count:
            break
        others = rng.sample(of_source[source], min(TRIES, len(of_source[source])))
        own = said[unit].values()
        wrong = (said[other][source] for other in others if other != unit)
        # A label that says the same as any of this unit's would be a wrong "wrong answer".
        if other := next((each for each in wrong if not any(_is_same(each, mine) for mine in own)), None):
            found.append(_make_pair(PairKind.KNOWN, unit, (source, source), (said[unit][source], other)))
    return found


def _is_same(one: SourceLabel, other: SourceLabel) -> bool:
    """True if two labels differ only in case, spaces or a final full stop."""
    a, b = (" ".join(each.text.casefold().split()).rstrip(".") for each in (one, other))
    return a == b


def _add_repeats(pairs: list[Pair], count: int, rng: Random) -> None:
    """Insert some plain pairs again, each at least `GAP` pairs after its first place if there are so many."""
    plains = [pair for pair in pairs if pair.kind == PairKind.PLAIN]
    for pair in rng.sample(plains, min(count, len(plains))):
        again = copy(pair)
        again.kind, again.original = PairKind.REPEAT, pair
        # A short list has no room for the gap: the repetition then comes last.
        pairs.insert(rng.randint(min(pairs.index(pair) + 1 + GAP, len(pairs)), len(pairs)), again)
