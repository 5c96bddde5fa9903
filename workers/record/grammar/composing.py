"""Write a reply from its parts in the form that `reply` parses. Used for replies of people and for function calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from workers.record.replies import Hypothesis


@dataclass(frozen=True)
class Written:
    """The parts of a reply as plain text."""

    prose: str = ""
    hypotheses: tuple[Hypothesis, ...] = ()
    program: str = ""
    description: str = ""
    reasoning: str = ""
    bias: str = ""
    domain: str = ""
    labels: tuple[str, ...] = ()


def write(reply: Written) -> str:
    """Return the filled parts of a reply, each under its tag."""
    return strip_unstorable("\n\n".join(_blocks(reply)))


def strip_unstorable(text: str) -> str:
    """Replace characters that databases refuse: unpaired surrogates and zero bytes."""
    return re.sub("[\x00\ud800-\udfff]", "\ufffd", text)


def join_lines(text: str) -> str:
    """Return the words on one line."""
    return " ".join(text.split())


def _blocks(reply: Written) -> Iterator[str]:
    """Yield the filled parts of a reply, each under its tag."""
    if reply.prose:
        yield reply.prose
    if reply.hypotheses:
        yield "[HYPOTHESIS LIST]:\n" + "\n".join(_line(each) for each in reply.hypotheses)
    if reply.program:
        # Longer than any run of backticks in the program, which would end the fence
        fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`+", reply.program))])
        yield f"[CODE]:\n{fence}python\n{reply.program}\n{fence}"
    for name in ("description", "reasoning", "bias", "domain"):
        if text := getattr(reply, name):
            yield f"[{name.upper()}]: {text}"
    yield from (f"[LABEL {n}]: {label}" for n, label in enumerate(reply.labels, 1))


def _line(each: Hypothesis) -> str:
    mark = f"{each.status}: {each.reason}" if each.reason else each.status
    return f"Hypothesis_{each.number}: {each.text} [{mark}]"
