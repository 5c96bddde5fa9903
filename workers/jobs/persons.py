"""Rounds that a person writes: finds what was sent, and puts it into the form of a reply."""

from __future__ import annotations

from collections.abc import Iterator

from experiments.models import Run, Turn
from experiments.people import person
from workers.backbones.person import Person
from workers.protocols import Backbone

KEY = "person"
"""Of the backbone, in the registry."""


def with_reply(backbone: Backbone, run: Run) -> Backbone:
    """The backbone with the reply of the next round, where a person has sent it."""
    sent = run.turns.filter(round=run.rounds + 1, sent__isnull=False).select_related("author").first()
    return Person(person(sent.author), text_of(sent)) if sent else backbone


def text_of(turn: Turn) -> str:
    """The reply in the grammar that every backbone writes (`agent/reply.py`)."""
    return "\n\n".join(blocks(turn))


def blocks(turn: Turn) -> Iterator[str]:
    """The filled parts of a turn, each under its tag."""
    if turn.prose.strip():
        yield turn.prose.strip()
    if lines := filled(turn.hypotheses):
        yield "[HYPOTHESIS LIST]:\n" + "\n".join(f"Hypothesis_{n}: {line}" for n, line in enumerate(lines, 1))
    if turn.program.strip():
        fence = "`" * max(3, longest_run(turn.program, "`") + 1)
        yield f"[CODE]:\n{fence}python\n{turn.program.strip()}\n{fence}"
    for tag, text in (("DESCRIPTION", turn.description), ("REASONING", turn.reasoning), ("BIAS", turn.bias)):
        if text.strip():
            yield f"[{tag}]: {text.strip()}"
    yield from (f"[LABEL {n}]: {label}" for n, label in enumerate(filled(turn.labels), 1))


def filled(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def longest_run(text: str, character: str) -> int:
    """The longest row of a character in a text."""
    longest = current = 0
    for each in text:
        current = current + 1 if each == character else 0
        longest = max(longest, current)
    return longest
