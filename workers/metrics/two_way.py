"""Ask a vision-language model which of two labels fits a unit better: build the question, parse the answer.

Used by `jobs/judging.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from workers.metrics.quoting import DATA, quote
from workers.protocols import ImagePart, Message

Answer = Literal["first", "second", "neither"]

JUDGE = """\
You judge labels of units in vision networks. A label says in a few words what a unit responds to. You are shown what is
known of one unit, and two labels for it, A and B, in an order that was drawn by lot. You are not told who wrote them.
Judge only which says better what the unit responds to: a label that is true of more of the evidence is better, and of
two that are equally true the one that says it more exactly. Length and style do not count.

Think in at most three sentences. Then end with one line of its own, exactly one of these:
ANSWER: A
ANSWER: B
ANSWER: CANNOT TELL"""

EXEMPLARS = """\
These are the images of a dataset that excite the unit most, each masked: a red line encloses the region that drives
the unit, which is bright, and the rest is dimmed. After each masked image stands the same image whole."""

_LINE = re.compile(r"^[\s*_#>`]*answer[\s*_`]*[:=][\s*_`\"']*(a|b|cannot\s+tell)\b[\s*_`\"'.!)]*$", re.IGNORECASE)


def build_question(first: str, second: str, images: Sequence[tuple[str, str]], truth: str = "") -> list[Message]:
    """Return the conversation with the truth if it is known, else with pairs of keys of a masked and its raw image."""
    parts: list[str | ImagePart]
    if truth:
        parts = [f"The unit was built to respond to exactly this: {quote(truth)}"]
    else:
        parts = [EXEMPLARS]
        for rank, (masked, raw) in enumerate(images, 1):
            parts += [ImagePart(masked, f"exemplar {rank}, masked"), ImagePart(raw, f"exemplar {rank}, whole")]
    # The question stands last, after all images.
    parts.append(f"Label A: {quote(first)}\nLabel B: {quote(second)}\n\nWhich label is better?")
    return [Message("system", (f"{JUDGE}\n\n{DATA}",)), Message("user", tuple(parts))]


def parse_answer(reply: str) -> Answer | None:
    """Return the last answer of a reply in the requested form; None if it has none."""
    # The last line that fits: models think aloud before they answer.
    for line in reversed(reply.splitlines()):
        if found := _LINE.match(line):
            said = found[1].casefold()
            return "first" if said == "a" else "second" if said == "b" else "neither"
    return None
