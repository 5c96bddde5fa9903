"""Pass questions about the meaning of labels to workers, and their answers back, through Redis for a while."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2s

from experiments.core import notify

KEPT_SECONDS = 600
"""Lifetime of an answer in seconds. Labels that are added later are found once the question is asked again."""
MAX_WORDS_CHARS = 200


@dataclass(frozen=True)
class LabelAnswer:
    """Labels with their similarity from -1 to 1, highest first, or the reason why there are none."""

    near: Sequence[tuple[str, float]] = ()
    problem: str = ""


def put_question(text: str) -> int:
    """Store the words for a worker and return the number under which they are found."""
    asked = _number(text)
    # A job carries numbers only; the words wait in Redis under that number.
    notify.keep(f"maia:meaning-asked:{asked}", _fold(text), KEPT_SECONDS)
    return asked


def read_question(asked: int) -> str:
    """Return the words stored under a number; "" for none."""
    return notify.read_kept(f"maia:meaning-asked:{asked}") or ""


def keep_answer(text: str, answer: LabelAnswer) -> None:
    notify.keep(f"maia:meaning:{_number(text)}", json.dumps(asdict(answer)), KEPT_SECONDS)


def read_answer(text: str) -> LabelAnswer | None:
    """Return the answer; None if no worker has answered yet or Redis is away."""
    kept = notify.read_kept(f"maia:meaning:{_number(text)}")
    return LabelAnswer(**json.loads(kept)) if kept else None


def _fold(text: str) -> str:
    return " ".join(text.split())[:MAX_WORDS_CHARS]


def _number(text: str) -> int:
    # Six bytes are 48 bits: the number survives JSON and JavaScript, which are exact up to 53.
    return int.from_bytes(blake2s(_fold(text).encode(), digest_size=6).digest())
