"""Find the evidence for a hypothesis: experiments that ran before the agent changed its mind, and images that match
its words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from experiments.display import image_cards
from experiments.display.image_cards import LoggedCard
from experiments.display.label_meaning import parse_label, scenes
from experiments.models import Hypothesis, Observation, Run
from workers.record.origins import Origin

RECENT_IMAGES, LOOKED_AT = 200, 1_500
"""Experiments, and their images, in which words are searched: the newest."""
MAX_IMAGES = 6
"""Images of one hypothesis."""
ENOUGH = 0.6
"""Share of a hypothesis' words that the title or prompt of an image must contain."""
SAYING_NOTHING = """
    to of on in at is it or an by as be the and for with that this any all are not its has have from into such than
    then only some other others image images unit units neuron neurons respond responds responding activate
    activates activation presence object objects thing things anything selective specific feature features
    hypothesis which when what
"""
EMPTY = frozenset(SAYING_NOTHING.split())
"""Words that do not describe an image."""


def find_changes(run: Run, listed: Sequence[Hypothesis]) -> Mapping[int, tuple[Hypothesis, Sequence[int]]]:
    """Return the agent's changes to hypotheses by hypothesis key, each with the experiments of the round before it."""
    # The experiments of each round.
    ran: dict[int, list[int]] = {}
    for number, experiment in run.experiments.order_by("number").values_list("round", "number"):
        ran.setdefault(number, []).append(experiment)
    # A reply changes its list after it has read the results of the round before.
    before = {each.round: max((number for number in ran if number < each.round), default=0) for each in listed}
    return {each.pk: (each, ran.get(before[each.round], [])) for each in listed}


@dataclass(frozen=True)
class Bearing:
    """The images that bear on a hypothesis.

    `is_known`: scenes tell which images show it; otherwise words of titles do. `weakest` images show it and are not
    among the strongest; `others` do not show it.
    """

    strongest: Sequence[LoggedCard] = ()
    weakest: Sequence[LoggedCard] = ()
    others: Sequence[LoggedCard] = ()
    is_known: bool = False
    having: Sequence[Observation] = ()
    lacking: Sequence[Observation] = ()
    """All images generated with and without what it says, without exemplars and edits."""


def images(run: Run, texts: Sequence[str]) -> list[Bearing]:
    """Return for each text the images that show what it says, strongest and weakest, and the strongest others.

    If scenes cannot tell, images count whose title or prompt contains its words.
    """
    wanted = [words(text) for text in texts]
    if not any(wanted):
        return [Bearing() for _ in texts]
    rows = (
        # A round may have changed nothing: the last round with experiments counts.
        image_cards.newest_logged(run, RECENT_IMAGES)
        .select_related("experiment")
        # Programs and outputs may be megabytes, and only the number is needed.
        .defer(*(f"experiment__{name}" for name in ("state", "code", "output", "error", "calls")))
    )
    # 1. The images, with their scenes if a text can be understood.
    known = list(rows[:LOOKED_AT])
    meanings = [parse_label(text) for text in texts]
    drawn = scenes({row.image_id for row in known}) if any(meanings) else {}
    told = [row for row in known if row.image_id in drawn]
    # Words are compared only if there is no better way.
    named = [] if told and all(meanings) else [(words(f"{row.title} {row.prompt}"), row) for row in known]
    found = []
    # 2. For each text its own images.
    for read, each in zip(meanings, wanted, strict=True):
        if read and drawn:
            showing = {key for key, scene in drawn.items() if read.holds(scene)}
            shown = [row for row in told if row.image_id in showing]
            others = [row for row in told if row.image_id not in showing]
            found.append(_sort_out(shown, others, is_known=True))
        else:
            # A text without meaningful words would be contained in every title.
            naming = [row for held, row in named if each and len(each & held) >= ENOUGH * len(each)]
            among = {row.pk for row in naming}
            found.append(_sort_out(naming, [row for _, row in named if each and row.pk not in among], is_known=False))
    return found


def _sort_out(showing: Sequence[Observation], others: Sequence[Observation], *, is_known: bool) -> Bearing:
    """Choose the images to show from those that show it and from the others."""
    best = _choose_images(showing)
    among = {each.card.image for each in best}
    weakest = _choose_images([row for row in showing if row.image_id not in among], weakest=True)
    having, lacking = ([row for row in rows if _is_drawn(row)] for rows in (showing, others))
    return Bearing(best, weakest, _choose_images(others) if is_known else (), is_known, having, lacking)


def _is_drawn(row: Observation) -> bool:
    # Exemplars were chosen by their activation, and edits are not independent of their original.
    return row.origin not in (Origin.EXEMPLAR, Origin.EDITED) and math.isfinite(row.activation)


def _choose_images(rows: Sequence[Observation], *, weakest: bool = False) -> list[LoggedCard]:
    """Return the strongest, or the weakest, each image once."""
    ordered = sorted(rows, key=attrgetter("activation"), reverse=not weakest)
    return [
        LoggedCard.from_row(row) for row in image_cards.list_first_distinct(ordered, attrgetter("image_id"), MAX_IMAGES)
    ]


def words(text: str) -> set[str]:
    """Return the words that describe an image, in the singular."""
    found = (word.casefold() for word in re.findall(r"\w+", text))
    return {stem_word(word) for word in found if len(word) > 1 and word not in EMPTY and not word.isdigit()}


def stem_word(word: str) -> str:
    """Remove the plural, so that "red balls" equals "a red ball"."""
    # "boxes", "dishes"; but "horses" loses only its s.
    if len(word) > 4 and word.endswith("es") and word[-3] in "sxzh":
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
