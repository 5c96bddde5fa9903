"""What a reviewer looks at: conclusion, current hypotheses, images for and against, and experiments.

Plain data for templates. The number of queries does not depend on the run.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Max

from experiments.core.system_names import SystemNameMasker
from experiments.display import events, window
from experiments.display.answers import render_answer
from experiments.display.image_cards import ImageCard, find_strongest
from experiments.models import Event, Run, Unit, UnitProfile
from experiments.runs.page import experiments

BEST, EXEMPLARS = 10, 10
"""Maximum number of best images and of exemplars."""
EXPERIMENTS = 30
"""Experiments shown, collapsed. The run's own page has the others."""
NEWS = 12
"""New events that are listed."""
NOUNS = {
    "reply": "a reply of the agent",
    "experiment": "an experiment",
    "result": "the result of an experiment",
    "concluded": "a conclusion",
    "limit_reached": "a conclusion at the limit",
    "note": "a note",
}


def read_evidence(run: Run, names: SystemNameMasker, *, blind: bool) -> dict[str, Any]:
    """Return the evidence of a run, as far as a `blind` viewer may see it if they are."""
    latest = run.hypotheses.aggregate(Max("round"))["round__max"]
    rows = run.experiments.defer("state", "output").order_by("number")[:EXPERIMENTS]
    exemplars, dataset = find_strongest(run.observations.filter(origin="exemplar"), EXEMPLARS), ""
    # Not every run logs exemplars: those of the unit then serve for comparison.
    if not exemplars:
        exemplars, dataset = of_unit(run)
    return {
        # Before they submit, the label check would anchor them
        "answer": render_answer(run, names, acts=False, judges=blind),
        "description": run.conclusion.get("description") or run.conclusion.get("bias") or "",
        "hypotheses": run.hypotheses.filter(round=latest),
        "best": find_strongest(run.observations.exclude(origin="exemplar"), BEST),
        "exemplars": exemplars,
        "exemplars_of": dataset,
        "listed": experiments.list_experiments(list(rows)),
        "scale": events.scale_of(run),
        "backbone": run.versions.get("backbone") or events.backbone_of(run),
    }


def of_unit(run: Run) -> tuple[list[ImageCard], str]:
    """Return the unit's exemplars and their dataset: the one that the run uses if it has any, else any other."""
    units = Unit.objects.filter(layer__model__name=run.model, layer__name=run.layer, number=run.unit)
    profiles = list(UnitProfile.objects.filter(unit__in=units, written__isnull=False).select_related("dataset"))
    # False sorts before True: the run's own dataset comes first.
    profile = min(profiles, key=lambda each: each.dataset.key != run.options.get("dataset"), default=None)
    if profile is None:
        return [], ""
    rows = profile.exemplars.order_by("rank")[:EXEMPLARS]
    found = [ImageCard.exemplar(row) for row in rows]
    return found, profile.dataset.label or profile.dataset.key


def list_news(run: Run, seq: int) -> list[dict[str, Any]]:
    """List what happened in the run after event `seq`: the event, in words, and its link."""
    if seq >= run.last_seq:
        return []
    rows: list[Event] = list(run.events.filter(seq__gt=seq).order_by("seq")[:NEWS])
    return [
        {
            "seq": row.seq,
            "words": NOUNS.get(row.kind, row.kind.replace("_", " ")),
            "link": f"{run.get_absolute_url()}{window.link(run, row.seq)}",
        }
        for row in rows
    ]
