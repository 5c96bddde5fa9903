"""The desk of a person whose turn it is: what stands beside, above and below what they write."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import AnonymousUser, User

from experiments.core import access, transcript
from experiments.core.display_name import person
from experiments.models import HumanReply, Run
from experiments.models.member import Role
from experiments.runs.human import content, drafts, examples, reference, sending
from experiments.runs.human.content import Values
from experiments.runs.human.drafts import Refused, Stale, Unfit
from workers.jobs import human_backbone
from workers.record import tasks

LINE = re.compile(r'File "experiment\.py", line (\d{1,9})')
NAMES = {
    "description": ("Description", "What the unit responds to, what it does not, and the figures behind both."),
    "labels": ("Labels, one a line", "A short phrase for each concept; “none” if there is none."),
    "bias": ("Bias", "Each setting or subset, the mean activation there and elsewhere, how many images."),
    "reasoning": ("Reasoning", "Why, with the figures."),
}
BLANK = {"number": "", "text": "", "status": "open", "reason": ""}


@dataclass(frozen=True)
class Failure:
    """The program of the round before, where it failed: the line of it that the error names, 0 for none."""

    number: int
    error: str
    line: int


@dataclass(frozen=True)
class Part:
    """A field of the conclusion."""

    name: str
    label: str
    hint: str
    value: str
    problem: str = ""


@dataclass(frozen=True)
class Desk:
    """What the section under the transcript shows to one person. Without a `turn` it only tells what happened."""

    run: Run
    turn: HumanReply | None = None
    under_way: HumanReply | None = None
    """What was sent and is being played."""
    late: str = ""
    """Who was first, where this person's draft was not sent."""
    left_over: HumanReply | None = None
    """A draft of an earlier round that can still be taken up."""
    final_answer: bool = False
    failure: Failure | None = None
    assignment: str = ""
    entries: Sequence[reference.Entry] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""
    """Why what was just sent was not taken."""
    unsent: Sequence[tuple[str, str]] = ()
    """What was just sent and could not be kept as a draft: names and texts, to be copied."""
    kept: Sequence[tuple[str, str]] = ()
    """The draft as another tab left it, where the form shows what this one holds."""
    examples: Sequence[examples.Example] = examples.EXAMPLES

    statuses: Sequence[str] = content.STATUSES

    @property
    def hypotheses(self) -> list[dict[str, Any]]:
        """The list, with an empty line to go on with."""
        return [*self.turn.hypotheses, BLANK] if self.turn else []

    @property
    def parts(self) -> list[Part]:
        """The conclusion: what the task asks for, then whatever else has been written."""
        asked = tasks.named(self.run.task).answer
        more = [name for name in NAMES if name not in asked and getattr(self.turn, name)]
        return [
            Part(name, *NAMES[name], getattr(self.turn, name), self.problems.get(name, "")) for name in (*asked, *more)
        ]

    @property
    def hidden(self) -> list[str]:
        """Parts of a conclusion that the task does not ask for."""
        return [name for name in NAMES if name not in {part.name for part in self.parts}]


def of(run: Run, user: User | AnonymousUser) -> Desk | None:
    """What this person finds under the transcript; None if there is nothing for them to do or to be told."""
    if run.backbone != human_backbone.KEY or run.has_ended or not isinstance(user, User):
        return None
    if (access.role_of(user) or Role.VIEWER) < Role.RESEARCHER:
        return None
    if not transcript.awaits_reply(run):
        return Desk(run, late=late(run, user), under_way=sending.under_way(run))
    first = run.events.filter(kind="started").first()
    told = first.payload if first else {}
    return Desk(
        run,
        turn=drafts.current(run, user),
        late=late(run, user),
        left_over=drafts.left_over(run, user),
        final_answer=sending.final_answer(run),
        failure=failure(run),
        assignment=told.get("assignment", ""),
        entries=reference.entries(told.get("reference", "")),
    )


def after_refusal(run: Run, user: User, refusal: Refused, values: Values) -> Desk:
    """The desk with what was just sent and not taken. What is no draft stays in the form, or is there to be copied."""
    found = of(run, user) or Desk(run)
    problems = refusal.problems if isinstance(refusal, Unfit) else {}
    found = replace(found, trouble=str(refusal), problems=problems)
    if found.turn is None:
        return found if found.late else replace(found, unsent=named(values))
    if content.of(found.turn) == values:
        return found
    kept = named(content.of(found.turn)) if isinstance(refusal, Stale) else ()
    return replace(found, turn=filled(found.turn, values), kept=kept)


def filled(turn: HumanReply, values: Values) -> HumanReply:
    """The draft with other values, not saved."""
    for name, value in values.items():
        setattr(turn, name, value)
    return turn


def named(values: Values) -> list[tuple[str, str]]:
    """What somebody wrote, by the names of the fields."""
    lines = "\n".join(f"{each['text']} [{each['status']}] {each['reason']}".strip() for each in values["hypotheses"])
    texts = {"Hypotheses": lines} | {name.capitalize(): values[name] for name in content.TEXTS}
    return [(name, text) for name, text in texts.items() if text.strip()]


def late(run: Run, user: User) -> str:
    """Who sent the latest round, if this person has a draft of it that was not sent."""
    mine = drafts.left_over(run, user) or run.human_replies.filter(author=user, round=run.rounds + 1, sent=None).first()
    first = (
        run.human_replies.filter(round=mine.round, sent__isnull=False).select_related("author").first()
        if mine
        else None
    )
    return f"{person(first.author)} sent round {first.round} first." if first else ""


def failure(run: Run) -> Failure | None:
    """What went wrong in the latest experiment, if it belongs to the round before this one."""
    last = run.experiments.order_by("-number").first()
    if last is None or last.status in {"ok", "running"} or last.round != run.rounds:
        return None
    lines = LINE.findall(last.error)
    return Failure(last.number, last.error, int(lines[-1]) if lines else 0)
