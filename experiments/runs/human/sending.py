"""Sending a draft: it becomes the reply of its round, and the run goes on."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from experiments.core import queue, transcript
from experiments.core.display_name import person
from experiments.models import HumanReply, Run
from experiments.models.human_reply import What
from experiments.runs.human.drafts import Refused, Unfit
from workers.jobs import human_backbone
from workers.record.statuses import ACTIVE


class Late(Refused):
    """Somebody has sent this round already."""


class NotDue(Refused):
    """The run does not wait for a person at this moment."""


def send(turn: HumanReply) -> None:
    """Make a saved draft the reply of its round, and have a worker play it.

    Raises Late, NotDue or Unfit; the draft is then kept as it is.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=turn.run_id)  # of two people who send, one is first
        first = run.human_replies.filter(round=turn.round, sent__isnull=False).select_related("author").first()
        if first is not None:
            raise Late(f"{person(first.author)} has sent round {turn.round} already. Your draft is kept.")
        if turn.round != run.rounds + 1 or not transcript.awaits_reply(run):
            raise NotDue(f"{why_not(run)} Your draft is kept.")
        problems = human_backbone.problems(turn)
        if not problems and turn.what == What.EXPERIMENT and final_answer(run):
            problems = {"what": "A limit is reached: no program is run any more, so this is the last word: conclude."}
        if problems:
            raise Unfit(problems)
        turn.sent = timezone.now()
        turn.save(update_fields=["sent"])
        transcript.resume(run.pk, person(turn.author), with_reply=True)
        queue.enqueue(run.pk)


def under_way(run: Run) -> HumanReply | None:
    """The turn whose program waits for a worker or runs at this moment."""
    if run.has_ended or run.status not in ACTIVE:
        return None
    rows = run.human_replies.filter(what=What.EXPERIMENT, sent__isnull=False, round__in=(run.rounds, run.rounds + 1))
    turn = rows.select_related("author").order_by("-round").first()
    done = run.experiments.filter(round=run.rounds).exclude(status="running").exists()
    return None if turn is None or (turn.round == run.rounds and done) else turn


def stop(run: Run, user: User) -> HumanReply:
    """End the program that a person sent; its run goes on. Raises Refused if there is none."""
    turn = under_way(run)
    if turn is None:
        raise Refused("No program of a person is running.")
    HumanReply.objects.filter(pk=turn.pk, stopped_by="").update(stopped_by=person(user)[:150])
    return turn


def final_answer(run: Run) -> bool:
    """Whether the author of the next reply was told that no program is run any more."""
    notes = run.events.filter(kind="reminder", payload__reason="final_answer")
    return notes.filter(seq__gt=run.events.filter(kind="reply").order_by("-seq").values("seq")[:1]).exists()


def why_not(run: Run) -> str:
    """Why a person's reply cannot be taken now."""
    if run.has_ended:
        return f"The run has ended ({run.get_status_display().lower()})."
    if run.backbone != human_backbone.KEY:
        return "An agent writes the next round: the run was handed over."
    return f"The run is {run.get_status_display().lower()}, and does not wait for this round."
