"""Who writes the next replies: a person takes a run over, or hands it to an agent. The reply under way stays its
author's; recorded as `handed`, and a run that stands still goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from experiments.core import compatibility, queue, transcript
from experiments.core.display_name import person
from experiments.models import Backbone, Run
from experiments.runs.human.drafts import Refused
from workers import registry
from workers.jobs import human_backbone
from workers.record.statuses import REOPENABLE, Status

NOTE_CHARS = 4_000


@dataclass(frozen=True)
class Author:
    """What writes the replies: a key of the registry, the provider's model where there are several, and its name."""

    backbone: str
    model: str
    label: str


def people() -> Author:
    return Author(human_backbone.KEY, "", registry.label(registry.BACKBONES, human_backbone.KEY))


def agents() -> list[Backbone]:
    """The backbones that a run can be handed to, and those that are not here yet."""
    return [row for row in Backbone.objects.all() if row.key != human_backbone.KEY]


def author(run: Run, key: str, model: str) -> Author:
    """A person, or the agent of this name, fit for the run. Raises Refused with what is wrong."""
    if key == human_backbone.KEY:
        return people()
    row = next((row for row in agents() if row.key == key), None)
    if row is None:
        raise Refused(f"There is no agent “{key}” here. Choose one of: {', '.join(row.key for row in agents())}.")
    if not row.available:
        raise Refused(f"{row.label} cannot be used yet. {row.remedy}")
    if problem := compatibility.misfit(key, run.toolset):
        raise Refused(problem)
    if model and model not in row.model_names:
        raise Refused(f"{row.label} offers no model “{model}”. Choose one of: {', '.join(row.model_names) or 'none'}.")
    chosen = compatibility.model_of(key, model)
    if chosen in row.unpriced and run.limits.get("cost") is not None:
        raise Refused(f"No price is known for {chosen}, so the limit of the cost could not hold. Remove it first.")
    return Author(key, chosen, f"{row.label}, {chosen}" if chosen else row.label)


def may_change_hands(run: Run) -> bool:
    """Whether somebody else may write the next reply: a run that concluded, or spent its limits, is over."""
    return not run.has_ended or run.status in REOPENABLE


def hand(run_id: int, user: User, author: Author, note: str = "") -> None:
    """From the next reply on `author` writes; a `note` is put to them first. Raises Refused."""
    if len(note) > NOTE_CHARS:
        raise Refused(f"The note has {len(note):,} characters; at most {NOTE_CHARS:,} are taken. Shorten it.")
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)
        if not may_change_hands(run):
            raise Refused(f"The run is over ({run.get_status_display().lower()}): nobody writes in it any more.")
        if (run.backbone, run.backbone_model) == (author.backbone, author.model):
            raise Refused(f"{author.label} writes the replies of this run already.")
        who, awaited = person(user), transcript.awaits_reply(run)
        reopened = run.has_ended and transcript.resume(run.pk, who)
        told = {"backbone": author.backbone, "backbone_model": author.model, "label": author.label}
        transcript.append(run.pk, "handover", {"round": run.rounds, "who": who, **told})
        if note.strip():
            transcript.append(run.pk, "note", {"round": run.rounds, "who": who, "text": note.strip()})
        if reopened or (
            run.status in {*REOPENABLE, Status.WAITING} and transcript.resume(run.pk, who, with_reply=awaited)
        ):
            queue.enqueue(run.pk)
