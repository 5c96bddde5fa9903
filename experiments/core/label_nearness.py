"""What somebody asks of the meaning of all labels, and a worker's answer: both pass through Redis, by a number made of
the words, and are forgotten after a while."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2s

from experiments.core import notify

KEPT_SECONDS = 600
"""How long an answer stands; labels that came since are found when it is asked for again."""
LONGEST = 200


@dataclass(frozen=True)
class LabelAnswer:
    """Labels with their nearness, from -1 to 1, the nearest first; or why there are none."""

    near: Sequence[tuple[str, float]] = ()
    problem: str = ""


def put_question(text: str) -> int:
    """Keep the words for a worker; the number that leads to them."""
    asked = _number(text)
    notify.keep(f"maia:meaning-asked:{asked}", _fold(text), KEPT_SECONDS)
    return asked


def read_question(asked: int) -> str:
    """The words behind a number; "" for none."""
    return notify.read_kept(f"maia:meaning-asked:{asked}") or ""


def keep_answer(text: str, answer: LabelAnswer) -> None:
    notify.keep(f"maia:meaning:{_number(text)}", json.dumps(asdict(answer)), KEPT_SECONDS)


def read_answer(text: str) -> LabelAnswer | None:
    """None while no worker has answered, or Redis is away."""
    kept = notify.read_kept(f"maia:meaning:{_number(text)}")
    return LabelAnswer(**json.loads(kept)) if kept else None


def _fold(text: str) -> str:
    return " ".join(text.split())[:LONGEST]


def _number(text: str) -> int:
    return int.from_bytes(blake2s(_fold(text).encode(), digest_size=6).digest())
