"""Judge whether a label means the same as the truth, for units built to respond to something that words can name.

A language model judges, with label and truth in random order, so that it does not know which is the truth. Toybox
decides by its own vocabulary instead.
"""

from __future__ import annotations

import re
from typing import Literal

from workers.metrics.quoting import DATA, quote, read_line
from workers.protocols import Message

Agreement = Literal["same", "partly", "different"]

JUDGE = """\
You compare two phrases, A and B, that each say which images a unit of a vision network responds to. They say the same
if they mean the same set of images: synonyms, singular and plural, and the order of alternatives make no difference.
They agree partly if one leaves out an alternative or a condition of the other, adds one, or is clearly broader or
narrower.
Otherwise they are different. Think in at most two sentences. Then end with one line, exactly one of these:
ANSWER: SAME
ANSWER: PARTLY
ANSWER: DIFFERENT"""

_ANSWERS: dict[str, Agreement] = {"same": "same", "partly": "partly", "different": "different"}


def ask_for_agreement(label: str, truth: str, *, swapped: bool = False) -> list[Message]:
    """Return the conversation. `swapped` puts the truth first."""
    # By lot, so that the judge cannot tell which phrase is the truth.
    first, second = (truth, label) if swapped else (label, truth)
    return [Message("system", (f"{JUDGE}\n\n{DATA}",)), Message("user", (f"A: {quote(first)}\nB: {quote(second)}",))]


def parse_agreement(reply: str) -> Agreement | None:
    """Return the last answer of a reply in the requested form; None if it has none."""
    # Letters alone: models put the answer in asterisks or end it with a full stop.
    return _ANSWERS.get(re.sub(r"[^a-z]", " ", read_line(reply, "ANSWER").casefold()).strip())
