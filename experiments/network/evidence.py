"""What speaks for and against a label of a unit: the images its runs logged, sorted by whether their words hold the
label's, and the edits that moved the activation most. Words decide, not pictures: the page says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from experiments.charts import Scale
from experiments.gallery import SAME, Shot
from experiments.models import Hypothesis, Observation, Run
from experiments.search.folding import fold

LOOKED_AT = 2000
"""Observations of a unit that are sorted, the newest experiments' first."""
STRIP = 6
EDITS = 4
WORD = re.compile(r"\w+")
SMALL_WORDS = frozenset(
    WORD.findall(
        "a an and any are as at be by for from has have in into is it its kind like of on or other similar some such "
        "that the their them they this those to type various very which with "
        "image images photo picture pictures showing shows unit"
    )
)


@dataclass(frozen=True)
class Seen:
    """An observation of one of the unit's runs, and where it stands."""

    shot: Shot
    run: int
    experiment: int


@dataclass(frozen=True)
class Edit:
    before: Seen
    after: Seen

    @property
    def change(self) -> float:
        return self.after.shot.activation - self.before.shot.activation


@dataclass(frozen=True)
class Evidence:
    """Without a label all images count as not holding it. Means are None where there is no image."""

    strongest: Sequence[Seen]
    weakest: Sequence[Seen]
    others: Sequence[Seen]
    raised: Sequence[Edit]
    lowered: Sequence[Edit]
    holding: int
    holding_mean: float | None
    rest: int
    rest_mean: float | None
    scale: Scale
    cut: bool

    @property
    def any(self) -> bool:
        return bool(self.holding or self.rest or self.raised or self.lowered)


def evidence(runs: Sequence[Run], label: str, threshold: float | None) -> Evidence:
    """The evidence of these runs; one query."""
    everything = observations(runs)
    edits = edits_of(everything)
    edited = {id(edit.after) for edit in edits}
    plain = [seen for seen in everything if seen.shot.origin != "exemplar" and id(seen) not in edited]
    words = content(label)
    holding = [seen for seen in plain if words and holds(seen.shot, words)]
    chosen = {id(seen) for seen in holding}
    rest = [seen for seen in plain if id(seen) not in chosen]
    strongest = distinct(sorted(holding, key=lambda seen: -seen.shot.activation))
    shown = {seen.shot.image for seen in strongest}
    weak = [seen for seen in holding if seen.shot.image not in shown]
    return Evidence(
        strongest,
        distinct(sorted(weak, key=lambda seen: seen.shot.activation)),
        distinct(sorted(rest, key=lambda seen: -seen.shot.activation)),
        [edit for edit in sorted(edits, key=lambda edit: -edit.change)[:EDITS] if edit.change >= SAME],
        [edit for edit in sorted(edits, key=lambda edit: edit.change)[:EDITS] if edit.change <= -SAME],
        len(holding),
        mean(holding),
        len(rest),
        mean(rest),
        Scale.of([seen.shot.activation for seen in everything], threshold),
        len(everything) == LOOKED_AT,
    )


def observations(runs: Sequence[Run]) -> list[Seen]:
    if not runs:
        return []
    rows = Observation.objects.filter(experiment__run__in=[run.pk for run in runs])
    names = ("title", "activation", "image", "masked", "origin", "prompt", "seed", "original")
    places = ("experiment__run_id", "experiment__number")
    found = rows.order_by("-experiment_id", "position").values_list(*names, *places)[:LOOKED_AT]
    return [seen_in(row) for row in cast("Iterable[tuple[Any, ...]]", found) if math.isfinite(row[1])]


def seen_in(row: tuple[Any, ...]) -> Seen:
    title, activation, image, masked, origin, prompt, seed, original, run, experiment = row
    return Seen(Shot(title, activation, image, masked or image, origin, prompt, seed, original), run, experiment)


def edits_of(everything: Sequence[Seen]) -> list[Edit]:
    """The edits whose original the same run logged."""
    known = {(seen.run, seen.shot.image): seen for seen in everything}
    pairs = [(known.get((seen.run, seen.shot.original)), seen) for seen in everything if seen.shot.original]
    edits = [Edit(before, after) for before, after in pairs if before and before.shot.image != after.shot.image]
    return list({(edit.before.shot.image, edit.after.shot.image): edit for edit in edits}.values())


def content(label: str) -> list[re.Pattern[str]]:
    """The words of a label that say something, with or without a plural s."""
    words = [stem(word) for word in WORD.findall(fold(label)) if word not in SMALL_WORDS]
    # Languages that write without spaces have no ends of words.
    return [re.compile(rf"\b{word}s?\b" if word.isascii() else word) for word in dict.fromkeys(words)]


def stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def holds(shot: Shot, patterns: Sequence[re.Pattern[str]]) -> bool:
    """Whether title and prompt hold the words; of three or more, two thirds are enough."""
    text = fold(f"{shot.title} {shot.prompt}")
    found = sum(pattern.search(text) is not None for pattern in patterns)
    return found >= (len(patterns) if len(patterns) < 3 else math.ceil(len(patterns) * 2 / 3))


def distinct(ordered: Sequence[Seen]) -> list[Seen]:
    """The first few, each image once."""
    return list({seen.shot.image: seen for seen in reversed(ordered)}.values())[::-1][:STRIP]


def mean(some: Sequence[Seen]) -> float | None:
    return sum(seen.shot.activation for seen in some) / len(some) if some else None


def fates(runs: Sequence[Run]) -> list[Hypothesis]:
    """The hypotheses of these runs as each run last listed them; one query. Decided ones come first."""
    rows = Hypothesis.objects.filter(run__in=[run.pk for run in runs]) if runs else Hypothesis.objects.none()
    last: dict[tuple[int, int], Hypothesis] = {(row.run_id, row.number): row for row in rows.order_by("run", "round")}
    order: Mapping[str, int] = {"supported": 0, "refuted": 1}
    return sorted(last.values(), key=lambda row: (order.get(row.fate, 2), -row.run_id, row.number))
