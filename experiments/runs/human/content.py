"""What a turn holds, as it comes from a form: checked for length and kept as it was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import QueryDict

from experiments.core import transcript
from experiments.core.params import parse_number
from experiments.models import HumanReply
from experiments.models.human_reply import What

TEXTS = {
    "prose": 20_000,
    "program": 100_000,
    "description": 20_000,
    "labels": 10_000,
    "reasoning": 20_000,
    "bias": 20_000,
}
"""Texts of a turn -> the most characters that are kept of each."""
FIELDS = ("what", "hypotheses", *TEXTS)
STATUSES = ("open", "supported", "refuted")
MOST_HYPOTHESES, HYPOTHESIS_CHARS = 50, 2_000

Values = dict[str, Any]
"""Name of a field of a `HumanReply` -> its value."""


def from_form(data: QueryDict) -> Values:
    """The fields of the editor's form; what makes no sense is what an untouched form holds."""
    texts = {name: data.get(name, "").replace("\r\n", "\n").replace("\r", "\n") for name in TEXTS}
    what = data.get("what", "")
    values: Values = {"what": what if what in What.values else What.EXPERIMENT.value, **texts}
    rows = [data.getlist(f"hypothesis-{part}") for part in ("number", "text", "status", "reason")]
    values["hypotheses"] = numbered([row for row in zip(*rows, strict=False) if row[1].strip()])
    found: Values = transcript.storable(values)
    return found


def numbered(rows: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Hypotheses with numbers of their own: those they came with, else the next."""
    taken: set[int] = set()
    listed = []
    for number, text, status, reason in rows:
        wanted = parse_number(number, digits=3)
        own = wanted if wanted and wanted not in taken else max(taken, default=0) + 1
        taken.add(own)
        listed.append(
            {"number": own, "text": text, "status": status if status in STATUSES else "open", "reason": reason}
        )
    return listed


def of(turn: HumanReply) -> Values:
    """What a turn holds."""
    return {name: getattr(turn, name) for name in FIELDS}


def too_long(values: Values) -> dict[str, str]:
    """What cannot be kept because it is too long: field -> why."""
    lengths = {name: (len(values[name]), most) for name, most in TEXTS.items()}
    wrong = {
        name: f"This has {length:,} characters; at most {most:,} are kept. Shorten it."
        for name, (length, most) in lengths.items()
        if length > most
    }
    listed = values["hypotheses"]
    if len(listed) > MOST_HYPOTHESES:
        wrong["hypotheses"] = f"There are {len(listed)} hypotheses; at most {MOST_HYPOTHESES} are kept."
    if any(len(each["text"]) + len(each["reason"]) > HYPOTHESIS_CHARS for each in listed):
        wrong["hypotheses"] = f"A hypothesis takes at most {HYPOTHESIS_CHARS:,} characters. Shorten it."
    return wrong
