"""Drafts: each person's text of a round so far, checked for length and kept as it was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.http import QueryDict

from experiments.core import transcript
from experiments.core.params import parse_number
from experiments.models import HumanReply, ReplyPurpose, Run

TEXTS = {
    "prose": 20_000,
    "program": 100_000,
    "description": 20_000,
    "labels": 10_000,
    "reasoning": 20_000,
    "bias": 20_000,
}
"""Texts of a reply -> the most characters that are kept of each."""
STATUSES = ("open", "supported", "refuted")
MAX_HYPOTHESES, HYPOTHESIS_CHARS = 50, 2_000

Values = dict[str, Any]
"""Name of a field of a `HumanReply` -> its value."""


def read_form(data: QueryDict) -> Values:
    """Read the fields of the editor's form; invalid values become those of an untouched form."""
    # Browsers send \r\n; programs and comparisons of drafts need one kind of line break.
    texts = {name: data.get(name, "").replace("\r\n", "\n").replace("\r", "\n") for name in TEXTS}
    what = data.get("what", "")
    values: Values = {"what": what if what in ReplyPurpose.values else ReplyPurpose.EXPERIMENT.value, **texts}
    rows = [data.getlist(f"hypothesis-{part}") for part in ("number", "text", "status", "reason")]
    # A broken form may send lists of different lengths.
    values["hypotheses"] = _number([row for row in zip(*rows, strict=False) if row[1].strip()])
    found: Values = transcript.strip_unstorable(values)
    return found


def _number(rows: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Return the hypotheses, each with another number: the one it came with, else the next."""
    taken: set[int] = set()
    listed = []
    for number, text, status, reason in rows:
        wanted = parse_number(number, digits=3)
        # A number stays with its line from round to round; a repeated one would join two.
        own = wanted if wanted and wanted not in taken else max(taken, default=0) + 1
        taken.add(own)
        listed.append(
            {"number": own, "text": text, "status": status if status in STATUSES else "open", "reason": reason}
        )
    return listed


def find_too_long(values: Values) -> dict[str, list[str]]:
    """Return what cannot be kept because it is too long: field -> reason."""
    lengths = {name: (len(values[name]), most) for name, most in TEXTS.items()}
    wrong = {
        name: f"This has {length:,} characters; at most {most:,} are kept. Shorten it."
        for name, (length, most) in lengths.items()
        if length > most
    }
    listed = values["hypotheses"]
    if len(listed) > MAX_HYPOTHESES:
        wrong["hypotheses"] = f"There are {len(listed)} hypotheses; at most {MAX_HYPOTHESES} are kept."
    if any(len(each["text"]) + len(each["reason"]) > HYPOTHESIS_CHARS for each in listed):
        wrong["hypotheses"] = f"A hypothesis takes at most {HYPOTHESIS_CHARS:,} characters. Shorten it."
    return {name: [words] for name, words in wrong.items()}


# --- which draft ----------------------------------------------------------------------------------------


def find_current(run: Run, user: User) -> HumanReply:
    """Return this person's draft of the next round; if there is none, an unsaved one with what carries over."""
    if kept := run.human_replies.filter(round=run.rounds + 1, author=user).first():
        return kept
    # The latest list of hypotheses, and a failed program to correct.
    latest = run.hypotheses.order_by("-round").values_list("round", flat=True).first()
    hypotheses = list(run.hypotheses.filter(round=latest or 0).values("number", "text", "status", "reason"))
    last = run.experiments.only("status", "code", "round").order_by("-number").first()
    failed = last and last.status not in {"ok", "running"} and last.round == run.rounds
    program = last.code if last and failed else ""
    return HumanReply(run=run, round=run.rounds + 1, author=user, hypotheses=hypotheses, program=program)


def find_left_over(run: Run, user: User) -> HumanReply | None:
    """Return this person's draft of the latest round, which was not sent because another person was first."""
    return run.human_replies.filter(author=user, sent=None, version__gt=0, round=run.rounds).first()


def is_final_answer(run: Run) -> bool:
    """True if the author of the next reply was told that no more programs are run."""
    notes = run.events.filter(kind="reminder", payload__reason="final_answer")
    return notes.filter(seq__gt=run.events.filter(kind="reply").order_by("-seq").values("seq")[:1]).exists()
