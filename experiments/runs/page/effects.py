"""Show the effect of edits on the activation, by the property that they changed; and the activation by image
content."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from statistics import fmean
from typing import Any

from django.db.models import QuerySet

from experiments.core.thumbnails import picture_of
from experiments.display import events
from experiments.display.contrasts import list_stated
from experiments.display.effect_sizes import bound_mean
from experiments.display.evidence import Edit, read_evidence
from experiments.display.image_cards import ImageCard, LoggedCard
from experiments.display.label_meaning import scenes
from experiments.display.plots import IntervalRow, Level, Plot, PlotValue, ValueGroup, draw_groups, draw_intervals
from experiments.display.scene_changes import PROPERTIES, guess_change, list_contexts, name_change
from experiments.models import Observation, Run
from workers.record.origins import Origin
from workers.record.stated_biases import StatedBias, find_sides
from workers.registry import BLINDED_KIND

LOOKED_AT = 1_000
"""Images that are sorted by what they show, the newest."""
MIN_IMAGES = 3
"""Images that show something, and that do not, from which it is a row."""
ENDS = 12
"""Rows at either end that are shown where there are more."""
QUOTED = re.compile(r'["“]([^"“”]{1,60})["”]')
MEAN = "Mean activation, with 95 % interval"
PROBABILITIES = frozenset({"logit", BLINDED_KIND})
"""Kinds of systems whose activation is a probability, or the score of a detector: from 0 to 1."""
GROUPS, VARIANTS = 24, 24
"""Originals that are shown with their edits, those of the largest change first, and edits of one."""


def read_effects(run: Run, _: Mapping[str, str]) -> dict[str, Any]:
    """Return both plots, and the originals with their variants."""
    found = read_evidence([run], "", run.exemplar_mean)
    drawn = scenes({card.image for edit in found.edits for card in (edit.before.card, edit.after.card)})
    groups: dict[str, list[Edit]] = defaultdict(list)
    guessed = 0
    for edit in found.edits:
        scene, edited = drawn.get(edit.before.card.image), drawn.get(edit.after.card.image)
        # True counts as 1.
        guessed += not (scene and edited)
        groups[name_change(scene, edited) if scene and edited else guess_change(_words(edit))].append(edit)
    probable = run.system_kind in PROBABILITIES
    drawn_rows = _list_drawn(run.observations.all())
    # Stated biases replace the search for quoted words.
    stated = _draw_stated(list_stated(run), drawn_rows, probable=probable)
    contexts, by_scene = _draw_contexts(drawn_rows, "" if stated else run.statement, probable=probable)
    return {
        "scale": events.scale_of(run),
        "edits": len(found.edits),
        "guessed": guessed,
        "plot": _draw_changes(groups, (-1.0, 1.0) if probable else None),
        "groups": _group_by_original(found.edits),
        "stated": stated,
        "contexts": contexts,
        "by_scene": by_scene,
    }


def _words(edit: Edit) -> str:
    return edit.after.card.prompt or edit.after.card.title


def _draw_changes(groups: Mapping[str, Sequence[Edit]], within: tuple[float, float] | None) -> Plot | None:
    """Draw a row for each property, the largest mean change first; `within` are the bounds of changes, if any."""
    rows = [
        ValueGroup(name, "edited", [_draw_change(edit) for edit in groups[name]]) for name in PROPERTIES if groups[name]
    ]
    rows.sort(key=lambda each: -abs(each.mean or 0.0))
    label = "What edits did to the activation, by the property they changed"
    no_change = Level(0.0, "no change")
    return draw_groups(rows, label, "Change of the activation", level=no_change, bounds=True, within=within)


def _draw_change(edit: Edit) -> PlotValue:
    title = edit.after.card.title or "untitled"
    link = f"?experiment={edit.after.experiment}#experiment-{edit.after.experiment}"
    return PlotValue(edit.change, title, link, picture_of(edit.after.card.image))


def _group_by_original(edits: Sequence[Edit]) -> list[tuple[ImageCard, list[ImageCard]]]:
    """Return each original once, with its variants, the largest change first."""
    groups: dict[str, list[Edit]] = defaultdict(list)
    for edit in edits:
        groups[edit.before.card.image].append(edit)
    for group in groups.values():
        group.sort(key=lambda edit: -abs(edit.change))
    ordered = sorted(groups.values(), key=lambda group: -abs(group[0].change))[:GROUPS]
    return [(group[0].before.card, [edit.changed for edit in group[:VARIANTS]]) for group in ordered]


# --- what images show ---------------------------------------------------------------------------------


def _draw_stated(stated: Sequence[StatedBias], rows: Sequence[Observation], *, probable: bool) -> Plot | None:
    """Draw each stated bias as the images with its context and those without, as its test takes them; None if no bias
    has both."""
    # Rows are in order of their experiments, which `groupby` needs.
    experiments = {number: list(group) for number, group in groupby(rows, key=attrgetter("experiment.number"))}
    drawn: list[IntervalRow] = []
    one_subject = len({each.subject for each in stated}) < 2
    for each in stated:
        found = find_sides(each, experiments, stated)
        sides = found.inside, found.outside
        of = f" ({', '.join(each.subject)})" if each.subject and not one_subject else ""
        if all(sides):
            for word, kind, some in zip(("with", "without"), ("part-3", "part-0"), sides, strict=True):
                images = [LoggedCard.from_row(row) for row in some]
                drawn.append(replace(_measure(f"{word} “{each.context}”{of}", images, probable=probable), kind=kind))
    label = "Mean activation with and without the context of each stated bias"
    return draw_intervals(drawn, label, MEAN, sorts=False, counts=True)


def _draw_contexts(rows: Sequence[Observation], statement: str, *, probable: bool) -> tuple[Plot | None, bool]:
    """Draw the mean activation of the images that the run drew, by what they show; and return True if scenes say it."""
    images = [LoggedCard.from_row(row) for row in reversed(rows)]
    known = scenes({each.card.image for each in images})
    by_scene = bool(known)
    shown: dict[str, list[LoggedCard]] = defaultdict(list)
    for each in images:
        if each.card.image in known:
            for name, word in list_contexts(known[each.card.image]):
                shown[f"{name}: {word}"].append(each)
    # Without scenes, a title shows what it says: look for the words that the conclusion quotes.
    for word in [] if by_scene else dict.fromkeys(QUOTED.findall(statement)):
        shown[f"“{word}” in the title"] = [each for each in images if word.casefold() in each.card.title.casefold()]
    measured = [each for each in images if not by_scene or each.card.image in known]
    found = [
        _measure(name, some, probable=probable)
        for name, some in shown.items()
        if len(some) >= MIN_IMAGES and len(measured) - len(some) >= MIN_IMAGES
    ]
    if not found:
        return None, by_scene
    found.sort(key=lambda each: -each.value)
    found = found if len(found) <= 2 * ENDS else [*found[:ENDS], *found[-ENDS:]]
    mean = fmean(each.card.activation for each in measured)
    label = f"Mean activation of {len(measured)} images by what they show; the line is the mean of all"
    return draw_intervals(found, label, MEAN, level=mean, counts=True), by_scene


def _list_drawn(rows: QuerySet[Observation]) -> list[Observation]:
    """Return the images that were drawn on purpose, in order."""
    # Not exemplars, which were chosen by their activation, nor edits.
    chosen = rows.filter(origin__in=(Origin.GENERATED, Origin.ORIGINAL)).select_related("experiment")
    chosen = chosen.defer("experiment__state", "experiment__code", "experiment__output")
    found = chosen.order_by("-experiment_id", "-position")[:LOOKED_AT]
    return [each for each in reversed(found) if math.isfinite(each.activation)]


def _measure(name: str, some: Sequence[LoggedCard], *, probable: bool) -> IntervalRow:
    values = [each.card.activation for each in some]
    strongest = max(some, key=lambda each: each.card.activation)
    row = IntervalRow(name, fmean(values), n=len(values), picture=picture_of(strongest.card.image))
    ends = bound_mean(values, (0.0, 1.0) if probable else None)
    return replace(row, low=ends[0], high=ends[1]) if ends else row
