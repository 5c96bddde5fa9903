"""Figures of neurons against latents: each side with intervals, the front over several k, and AIM's published
claims."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.models import Evaluation, EvaluationItem, ItemStatus
from experiments.pairwise.of_evaluation import ToldPreference, name_pair, name_source, read_preferences
from experiments.pairwise.proportions import Proportion
from experiments.pairwise.sources import BY_LATENT
from workers.jobs.evaluations import figures
from workers.jobs.evaluations.figures import Score
from workers.jobs.evaluations.sources import AGENT, ONE_SHOT
from workers.metrics.intervals import estimate_contrast, estimate_mean
from workers.metrics.ranking import CHANCE, STRONG
from workers.record.estimates import Estimate
from workers.record.evaluations import (
    Cell,
    EvaluationResult,
    Figure,
    Point,
    ResultPlot,
    ResultTable,
    Series,
)

NEURONS, LATENTS, MATCHED = "neurons", "latents", "latents of neurons"
"""Groups of items: random units, random latents, and latents that add most to one of the units."""
CARDS = "autoencoders"
"""Key of `Evaluation.prepared`: the description of each autoencoder."""
_CHOICE = "choice"


def _read_choice(item: EvaluationItem) -> float | None:
    """Read a score. A label that is missing or cannot be tested counts as a random choice."""
    found = figures.score_of(_CHOICE)(item)
    guessed = item.status == ItemStatus.LACKING or item.scores.get("testable") is False
    return CHANCE if found is None and guessed else found


_SCORES: Mapping[str, tuple[str, Score, float]] = {
    "pearson": ("r", figures.score_reader("pearson"), -1.0),
    _CHOICE: ("right choices (2AFC)", _read_choice, 0.0),
    "auprc_above": ("AUPRC above its base rate", figures.score_reader("auprc_above"), -math.inf),
    "generated_auc": ("AUC of 7 + 7", figures.score_reader("generated_auc"), 0.0),
}
"""Scores of a label: name, reader, and minimum. The maximum is 1."""
_MAIN = ("pearson", _CHOICE)
_CLAIMED = (
    ("AIM over MILAN, neurons (claimed)", 0.78),
    ("AIM over MAIA, neurons (claimed)", 0.68),
    ("MAIA over MILAN, neurons (published)", 0.73),
)
"""Shares of people's choices between two labels: AIM's Table 1, MAIA's Table 1 (arXiv 2404.14394)."""
_CLAIM_NOTE = (
    "Whose label of two is preferred. AIM's shares are claims: its text does not say which auto-encoders it used, and "
    "gives no intervals. Ours need a judge, or a pairwise trial of these labels by people, that is closed."
)
_CHOICE_NOTE = (
    f"2AFC: of an image that activates the unit strongly (top {STRONG:.0%}, at least half of the maximum) and one "
    "that does not, how often the label describes the first better; chance is 0.5. "
    "Means over units with 95 % intervals. A missing label scores 0, or chance. "
    "Units and latents are drawn at random from those that some image activates."
)

Items = Sequence[EvaluationItem]


@dataclass(frozen=True)
class _Compared:
    """One side of the comparison: the layer itself, or an autoencoder with its description."""

    key: str
    words: str
    items: Items
    """Random units or latents, with all sources."""
    card: Mapping[str, Any]


def summarise(evaluation: Evaluation, items: Items) -> EvaluationResult:
    """Return means by side, differences from the neurons, labels of neurons by their latents, the front, AIM's
    claims."""
    cards: Any = evaluation.prepared.get(CARDS) or []
    neurons = _Compared(NEURONS, "Neurons", _filter_group(items, NEURONS), {})
    sides = [neurons, *(_read_side(items, card, cards) for card in cards)]
    means = [(side.words, _average(side, name)) for name in _MAIN for side in sides]
    return EvaluationResult(
        (
            *(figure for _, figure in means),
            *(_contrast(side, neurons, name) for side in sides[1:] for name in _MAIN),
            *_compare_sources(neurons, sides),
        ),
        (_list_sides(sides), _list_labels(items, sides), _set_beside(evaluation)),
        (
            figures.interval_plot("r", "Labels of neurons and latents", "mean r", means[: len(sides)]),
            _draw_front(sides),
        ),
        tuple(figures.note_lacking(items)),
    )


def _filter_group(items: Items, group: str, model: str = "") -> list[EvaluationItem]:
    """Return the items of a group, optionally of one model."""
    # By name, because units may have left the catalogue.
    return [each for each in items if each.group == group and each.unit_name.startswith(f"{model} / " if model else "")]


def _read_side(items: Items, card: Mapping[str, Any], cards: Sequence[Mapping[str, Any]]) -> _Compared:
    """Return the side of an autoencoder, named by k if all k differ, else by name."""
    # k names a side best, but two auto-encoders may share it, and some have none.
    several = len({each["k"] for each in cards}) == len(cards) and card["k"]
    words = f"Latents, k {card['k']}" if several else f"Latents of {card['name']}"
    return _Compared(_name_key(card["name"]), words, _filter_group(items, LATENTS, card["name"]), card)


def _name_key(name: str) -> str:
    return name.removeprefix(BY_LATENT).replace(".", "_")


def _average(side: _Compared, name: str) -> Figure:
    found = _estimate(side.items, AGENT, name)
    label = f"{side.words}: mean {_SCORES[name][0]}"
    return Figure(f"{side.key}.{name}", label, found.value, found.low, found.high, found.n, note=found.why)


def _read_scores(items: Items, source: str, name: str) -> list[float]:
    score = _SCORES[name][1]
    return [value for item in figures.filter_source(items, source) if (value := score(item)) is not None]


def _estimate(items: Items, source: str, name: str) -> Estimate:
    """Return the mean, with its interval cut to the possible range."""
    # Student's interval may exceed the range of a score
    found, least = estimate_mean(_read_scores(items, source, name)), _SCORES[name][2]
    if found.low is None or found.high is None:
        return found
    return replace(found, low=max(found.low, least), high=min(found.high, 1.0))


def _contrast(side: _Compared, neurons: _Compared, name: str) -> Figure:
    """Compare latents with neurons. They are different units, so nothing is paired."""
    found = estimate_contrast(*(_read_scores(each.items, AGENT, name) for each in (side, neurons)))
    label = f"{side.words} less neurons: {_SCORES[name][0]}"
    return Figure(f"difference.{side.key}.{name}", label, found.value, found.low, found.high, found.n, note=found.why)


def _compare_sources(neurons: _Compared, sides: Sequence[_Compared]) -> list[Figure]:
    """Compare the agent with one-shot on each side, and a neuron's label from its latent with the agent's; paired."""
    planned = [
        (side, AGENT, ONE_SHOT, f"{side.words}: agent less one-shot", f"difference.{side.key}.agent-one-shot")
        for side in sides
    ]
    planned += [
        (neurons, side.card["name"], AGENT, f"Neurons: by {side.words.lower()} less agent", f"by_latent.{side.key}")
        for side in sides[1:]
    ]
    words, score, _ = _SCORES["pearson"]
    return figures.compare(
        [
            figures.PlannedComparison(
                f"{key}.pearson",
                f"{label}, {words}",
                figures.get_scores_by_unit(figures.filter_source(side.items, one), score),
                figures.get_scores_by_unit(figures.filter_source(side.items, other), score),
            )
            for side, one, other, label, key in planned
        ]
    )


def _measure(items: Items, source: str, name: str) -> Cell:
    found = _estimate(items, source, name)
    return Cell(value=found.value, low=found.low, high=found.high, n=found.n)


def _list_labels(items: Items, sides: Sequence[_Compared]) -> ResultTable:
    """Return a row for each side and source."""
    rows: list[tuple[str, Items, str]] = []
    for side in sides:
        rows += [(f"{side.words}, {name_source(each).lower()}", side.items, each) for each in (AGENT, ONE_SHOT)]
    for side in sides[1:]:
        name = side.card["name"]
        rows.append(
            (f"{side.words}: those that add most to a neuron, agent", _filter_group(items, MATCHED, name), AGENT)
        )
        rows.append((f"Neurons, by their {side.words.lower()}", sides[0].items, name))
    cells = [(Cell(words), *(_measure(some, source, name) for name in _SCORES)) for words, some, source in rows]
    columns = ("", *(words for words, *_ in _SCORES.values()))
    return ResultTable("labels", "Labels by side and source", columns, tuple(cells), _CHOICE_NOTE)


def _list_sides(sides: Sequence[_Compared]) -> ResultTable:
    """Return the autoencoders with their quality, and the agent's scores on their latents."""
    front = _find_front(sides)
    rows = [
        (
            Cell(side.words),
            Cell(f"{side.card['latents']:,}"),
            Cell(value=side.card["active"]),
            Cell(value=side.card["unexplained"]),
            *(_measure(side.items, AGENT, name) for name in _MAIN),
            Cell("yes" if side in front else ""),
        )
        for side in sides[1:]
    ]
    columns = (
        "Auto-encoder",
        "Latents",
        "Active at a position",
        "Variance unexplained",
        *(_SCORES[name][0] for name in _MAIN),
        "On the front",
    )
    note = "On the front: no other one has both more variance explained and a higher r. The layer itself explains all."
    return ResultTable("autoencoders", "Auto-encoders of the layer", columns, tuple(rows), note)


def _place(side: _Compared) -> tuple[float, Figure]:
    """Return the fraction of variance unexplained (0 for the layer itself) and the mean r."""
    return float(side.card.get("unexplained") or 0.0), _average(side, "pearson")


def _find_front(sides: Sequence[_Compared]) -> list[_Compared]:
    """Return the Pareto front: sorted by unexplained variance, the sides with a higher r than all before."""
    found: list[_Compared] = []
    best = float("-inf")
    # Of equal variance the better label comes first.
    for side in sorted(sides, key=lambda each: (_place(each)[0], -(_place(each)[1].value or 0.0))):
        value = _place(side)[1].value
        if value is not None and value > best:
            found.append(side)
            best = value
    return found


def _draw_front(sides: Sequence[_Compared]) -> ResultPlot:
    """Plot unexplained variance against the mean r of the latents' labels."""
    front = _find_front(sides)

    def draw(some: Sequence[_Compared]) -> tuple[Point, ...]:
        placed = [(side.words, *_place(side)) for side in some]
        return tuple(
            Point(x, found.value, found.low, found.high, label=words)
            for words, x, found in placed
            if found.value is not None
        )

    series = (
        Series("On the front", draw(front)),
        Series("Behind it", draw([each for each in sides if each not in front])),
    )
    x = "fraction of variance unexplained"
    return ResultPlot("front", "Variance left unexplained, and how right labels are", "front", x, "mean r", series)


def _set_beside(evaluation: Evaluation) -> ResultTable:
    """Return our preferences between the same kinds of labels, then AIM's claims."""
    ours = [(Cell(words), _show(share)) for words, share in map(_put_latent_first, read_preferences(evaluation))]
    claimed = [(Cell(words, weak=True), Cell(value=value, weak=True)) for words, value in _CLAIMED]
    return ResultTable("claims", "Beside what AIM claims", ("Preferred", "Share"), (*ours, *claimed), _CLAIM_NOTE)


def _put_latent_first(told: ToldPreference) -> tuple[str, Proportion]:
    """Return the comparison and its share. A latent's label comes before the agent's, as AIM before MAIA."""
    share = told.cell.preferred
    by = f"by {told.by}"
    if not (told.one == AGENT and told.other.startswith(BY_LATENT)):
        return f"{name_pair(told.one, told.other, told.model)}, {by}", share
    words = f"{name_pair(told.other, told.one, told.model)}, {by}"
    # The share is turned around, so its ends change places.
    value, low, high = (None if end is None else 1 - end for end in (share.value, share.high, share.low))
    return words, Proportion(share.n - share.hits, share.n, value, low, high, share.units)


def _show(share: Proportion) -> Cell:
    return Cell(value=share.value, low=share.low, high=share.high, n=share.n)
