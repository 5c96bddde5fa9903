"""Follow each hypothesis round by round: a matrix, and for each what decided it and which images bear on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from experiments.display import bearing, events
from experiments.display.effect_sizes import separate
from experiments.display.image_cards import LoggedCard
from experiments.display.plots import LineSeries, Plot, PlotShape, PlotTable, Scale, draw_lines
from experiments.display.strips import Strip, draw_strips
from experiments.display.window import number
from experiments.models import Hypothesis, Run
from workers.record.figures import figure

COLUMNS = 30
"""Rounds side by side, the newest of those in which something changed."""
ROWS = 40
"""Hypotheses, the newest."""
TURNS = 8
"""Changes of mind that are told of one hypothesis, the newest."""
DOTS, DOTS_OF_MANY, MAX_FEW_HYPOTHESES = 300, 60, 8
"""Dots of a strip; where there are more hypotheses than so few; and how many are few."""
SIDE = PlotShape(400, 200, 40, 12, 22, 42, 40)
"""Of the plot over rounds."""
ALIKE = 0.5
"""Share of words in common from which a new wording under the same number is the same hypothesis."""


@dataclass
class HypothesisRow:
    """One hypothesis through the rounds, however it was worded."""

    by_round: dict[int, Hypothesis] = field(default_factory=dict)
    """Round -> what the agent said of it there."""

    @property
    def latest(self) -> Hypothesis:
        return self.by_round[max(self.by_round)]

    @property
    def first(self) -> Hypothesis:
        return self.by_round[min(self.by_round)]

    @property
    def wordings(self) -> list[Hypothesis]:
        """Return earlier wordings, each as first used."""
        found = {_normalize_words(each.text): each for _, each in sorted(self.by_round.items(), reverse=True)}
        found.pop(_normalize_words(self.latest.text), None)
        return sorted(found.values(), key=lambda each: each.round)

    @property
    def turns(self) -> list[Hypothesis]:
        """Return the hypothesis at each change of its status, which begins as open."""
        listed = [each for _, each in sorted(self.by_round.items())]
        statuses = ["open", *(each.status for each in listed)]
        return [each for before, each in zip(statuses, listed, strict=False) if each.status != before][-TURNS:]


def read_hypotheses(run: Run, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the matrix of the newest rounds, or of those before round `before`, and the evidence for each
    hypothesis."""
    listed = run.hypotheses.order_by("round", "number")
    lists = {place: list(group) for place, group in groupby(listed, key=lambda each: each.round)}
    rows = trace_hypotheses(lists)
    picked = rows[-ROWS:]
    columns = [each for each in changes(lists) if each < (number(params, "before") or run.rounds + 1)]
    shown = columns[-COLUMNS:]
    # For all rows at once: the number of queries does not depend on them.
    turns = bearing.find_changes(run, [turn for row in picked for turn in row.turns])
    images = bearing.images(run, [row.latest.text for row in picked])
    scale = events.scale_of(run)
    effects = [trace_effect(found, list(row.by_round)) for row, found in zip(picked, images, strict=True)]
    most = DOTS if len(picked) <= MAX_FEW_HYPOTHESES else DOTS_OF_MANY
    statuses = Counter(row.latest.status for row in picked)
    return {
        "columns": shown,
        "earlier": shown[0] if len(columns) > COLUMNS else None,
        "left_out": len(rows) - len(picked),
        "shown": [
            {
                "row": row,
                "cells": [(column, row.by_round.get(column), effect.get(column)) for column in shown],
                # An agent may leave a hypothesis out without deciding it.
                "dropped": max(lists) not in row.by_round,
                "turns": [turns[turn.pk] for turn in row.turns],
                "images": found,
                "plot": _draw_sides(found, scale, row.latest.text, most),
                "over_rounds": _draw_effect(effect, row),
            }
            for row, found, effect in zip(picked, images, effects, strict=True)
        ],
        "scale": scale,
        "counted": [(status, statuses[status]) for status in ("supported", "refuted", "open") if statuses[status]],
    }


def trace_effect(found: bearing.Bearing, rounds: Sequence[int]) -> dict[int, float]:
    """Return by round the AUC of images with what a hypothesis says against those without, as logged before that
    round's reply; rounds without images on both sides are left out."""
    effects = {}
    for place in rounds:
        # Only what the agent had seen before it replied.
        sides = (
            [row.activation for row in side if row.experiment.round < place] for side in (found.having, found.lacking)
        )
        if (effect := separate(*sides)) is not None:
            effects[place] = effect
    return effects


def _draw_sides(found: bearing.Bearing, scale: Scale, text: str, most: int) -> Plot | None:
    """Draw activations with and without; None if one side has none."""
    if not found.having or not found.lacking:
        return None
    names = ("Shows it", "Does not") if found.is_known else ("Titled so", "Titled else")
    sides = [
        Strip(name, kind, [LoggedCard.from_row(row) for row in rows])
        for name, kind, rows in zip(names, ("with", "without"), (found.having, found.lacking), strict=True)
    ]
    return draw_strips(sides, scale, f"Activations with and without: {text[:120]}", compares=True, most=most)


def _draw_effect(effect: Mapping[int, float], row: HypothesisRow) -> Plot | None:
    """Draw how far the sides lay apart when the agent said what of it; None for a single round."""
    if len(effect) < 2:
        return None
    names = [str(place) for place in effect]
    series = LineSeries("AUC", "part-0", list(effect.values()), [f"?round={place}#round-{place}" for place in effect])
    plot = draw_lines(
        names, [series], "AUC by round, of the images so far", "Round", "AUC so far", shape=SIDE, span=(0, 1)
    )
    for dot, place in enumerate(effect):
        said = row.by_round[place].status
        plot.dots[dot] = replace(plot.dots[dot], words=f"Round {place}: AUC {figure(effect[place])}, {said}")
    plot.table = PlotTable(
        ("Round", "AUC so far", "Agent says"),
        [(str(place), value, row.by_round[place].status) for place, value in effect.items()],
    )
    return plot


def trace_hypotheses(lists: Mapping[int, Sequence[Hypothesis]]) -> list[HypothesisRow]:
    """Follow each hypothesis through the rounds: by its words, else by its number if the words are similar."""
    rows: list[HypothesisRow] = []
    by_words: dict[str, HypothesisRow] = {}
    by_number: dict[int, HypothesisRow] = {}
    for place, listed in lists.items():
        for each in listed:
            row = by_words.get(_normalize_words(each.text)) or _find_reworded(by_number.get(each.number), each, place)
            # Two lines of one round are two hypotheses, even with equal words.
            if row is None or place in row.by_round:
                rows.append(row := HypothesisRow())
            row.by_round[place] = each
            by_words[_normalize_words(each.text)] = by_number[each.number] = row
    return rows


def _find_reworded(row: HypothesisRow | None, each: Hypothesis, place: int) -> HypothesisRow | None:
    """Return the row that had this number before, if this is a new wording of it."""
    if row is None or place in row.by_round:
        return None
    ours, theirs = bearing.words(each.text), bearing.words(row.latest.text)
    # Of the shorter wording: one that was made more precise still contains the earlier one.
    common = len(ours & theirs) / max(1, min(len(ours), len(theirs)))
    return row if common >= ALIKE else None


def _normalize_words(text: str) -> str:
    """Return the text without what does not matter: case, spaces and a final full stop."""
    return " ".join(text.casefold().rstrip(".").split())


def changes(lists: Mapping[int, Sequence[Hypothesis]]) -> list[int]:
    """Return the rounds in which the list changed, and the last one."""
    before: list[tuple[str, str]] = []
    found: list[int] = []
    for place, listed in lists.items():
        now = [(_normalize_words(each.text), each.status) for each in listed]
        if now != before:
            found.append(place)
        before = now
    last = max(lists, default=None)
    return found if last is None or last in found else [*found, last]
