"""Drafts: what each person has written of a round so far. One for each; two tabs of one person are told apart."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from experiments.models import HumanReply, Run
from experiments.runs.human import content
from experiments.runs.human.content import Values


class Refused(Exception):
    """What a person wrote was not taken. The message says why, and what became of it."""


class Stale(Refused):
    """The draft has been changed elsewhere since this copy of it was read. `turn` is the draft as it is kept."""

    def __init__(self, turn: HumanReply) -> None:
        super().__init__("This draft was changed elsewhere, in another tab or window of yours.")
        self.turn = turn


class Sent(Refused):
    """The draft has been sent; it stands in the transcript."""


class NoSuchRound(Refused):
    """The round is neither due nor one in which this person has a draft."""


class Unfit(Refused):
    """Some of it cannot be taken. `problems`: the name of a field -> why."""

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__("It was not sent: some of it needs another look. All you wrote is kept.")
        self.problems = problems


def current(run: Run, user: User) -> HumanReply:
    """This person's draft of the next round; one that is not saved yet, with what carries over, if there is none."""
    kept = run.human_replies.filter(round=run.rounds + 1, author=user).first()
    return kept or HumanReply(run=run, round=run.rounds + 1, author=user, **beginning(run))


def beginning(run: Run) -> dict[str, Any]:
    """What carries over: the hypotheses of the latest list, and a program that failed, to be put right."""
    latest = run.hypotheses.order_by("-round").values_list("round", flat=True).first()
    rows = run.hypotheses.filter(round=latest).values("number", "text", "status", "reason") if latest else []
    last = run.experiments.order_by("-number").values("status", "code", "round").first()
    failed = last is not None and last["status"] not in {"ok", "running"} and last["round"] == run.rounds
    return {"hypotheses": list(rows), "program": last["code"] if last and failed else ""}


def left_over(run: Run, user: User) -> HumanReply | None:
    """This person's draft of the latest round, which they did not send because somebody else was first."""
    return run.human_replies.filter(author=user, sent=None, version__gt=0, round=run.rounds).first()


def save(run_id: int, user: User, round_number: int, version: int, values: Values) -> HumanReply:
    """Keep what a person has written. `version` is that of the copy they wrote on, 0 for a fresh one.

    Raises Stale, Sent, NoSuchRound, Unfit; then nothing is changed.
    """
    if problems := content.too_long(values):
        raise Unfit(problems)
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)  # two tabs save one after the other
        turn = run.human_replies.filter(round=round_number, author=user).first()
        if turn is None and round_number not in {
            run.rounds,
            run.rounds + 1,
        }:  # one that was just sent by another counts
            raise NoSuchRound(f"Round {round_number} is not the next one any more, and you have no draft of it.")
        turn = turn or HumanReply(run=run, round=round_number, author=user)
        if turn.sent:
            raise Sent(f"You have sent round {round_number} already.")
        if turn.pk and content.of(turn) == values:
            return turn
        if turn.version != version:
            raise Stale(turn)
        for name, value in values.items():
            setattr(turn, name, value)
        turn.version, turn.saved = version + 1, timezone.now()
        turn.save()
    return turn
