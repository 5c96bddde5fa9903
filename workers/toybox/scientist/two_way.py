"""Decides by words alone which of two labels names the concepts of a truth more exactly. Pictures are not used."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workers.protocols import Message
from workers.toybox.concept_match import match

# The wording is that of `workers/metrics/two_way.py`: a change there must be repeated here
_TRUTH = re.compile(r"responds? to exactly this: “(.*)”\s*$", re.MULTILINE)
_LABELS = re.compile(r"^Label A: “(.*)”\nLabel B: “(.*)”$", re.MULTILINE)


def answer_two_way(messages: Sequence[Message]) -> str:
    """Answer a question about two labels; "" if the last message asks no such question."""
    text = messages[-1].text if messages else ""
    labels = _LABELS.search(text)
    if labels is None:
        return ""
    # Only before the labels: a label might contain the same words
    truth = _TRUTH.search(text[: labels.start()])
    if truth is None:
        return "The truth is not given in words, and I have no eyes for pictures.\n\nANSWER: CANNOT TELL"
    a, b = (_count_errors(label, truth[1]) for label in labels.groups())
    # Tuples compare in this order: words first, then the joining, then the direction
    said = "CANNOT TELL" if a == b else "A" if a < b else "B"
    return f"A {_describe(a)}; B {_describe(b)}.\n\nANSWER: {said}"


def _count_errors(label: str, truth: str) -> tuple[int, bool, bool]:
    """Return the number of missing and extra words, whether they are joined differently from the truth, and whether
    reversed."""
    found = match(label, truth)
    return len(found.missing) + len(found.extra), not found.right, found.direction == "turned"


def _describe(errors: tuple[int, bool, bool]) -> str:
    words, wrong, turned = errors
    if not wrong:
        return "names the concepts of the truth" + (", the condition first" if turned else "")
    return f"has {words} words missing or extra" if words else "joins the concepts otherwise than the truth"
