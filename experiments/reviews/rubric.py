"""The rubric: five lines scored from 1 to 5, a verdict, a corrected label, a note; read from what a form sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.core.errors import InvalidInput
from experiments.models import Review, ReviewVerdict
from experiments.models.review import LABEL_CHARS, NOTE_CHARS


@dataclass(frozen=True)
class RubricLine:
    """`low` and `high` say what 1 and 5 mean."""

    name: str
    question: str
    low: str
    high: str


LINES = (
    RubricLine("supported", "Supported by the evidence?", "contradicted", "shown directly"),
    RubricLine("specific", "Specific?", "fits many units", "what drives this one"),
    RubricLine("complete", "Complete?", "misses what drives it", "covers it all"),
    RubricLine("confounds", "Confounds tested?", "none", "all likely ones"),
    RubricLine("samples", "Enough samples?", "a handful", "many and varied"),
)
SCORES = (1, 2, 3, 4, 5)
NAMES = tuple(line.name for line in LINES)
TEXTS = {"corrected_label": LABEL_CHARS, "note": NOTE_CHARS}
"""Fields of words -> characters they hold."""
FIELDS = (*NAMES, "verdict", *TEXTS)


class UnreadableOpinion(InvalidInput):
    """A field of a review makes no sense, so that nothing of it was kept; the message says what would."""


def opinion_from(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a review as a form sends them; a field that is missing is empty. Raises UnreadableOpinion."""
    verdict = str(data.get("verdict", "") or "")
    if verdict and verdict not in ReviewVerdict.values:
        raise UnreadableOpinion(
            f"There is no verdict “{verdict[:40]}”. Choose one of: {', '.join(ReviewVerdict.values)}.", "verdict"
        )
    scores = {line.name: _score_from(line, data.get(line.name)) for line in LINES}
    return {**scores, "verdict": verdict, **{name: _text_from(name, data.get(name)) for name in TEXTS}}


def _score_from(line: RubricLine, value: Any) -> int | None:
    if value in (None, ""):
        return None
    if str(value) not in {str(score) for score in SCORES}:
        words = f"“{line.question}” takes a whole number from 1 to 5, not “{str(value)[:40]}”."
        raise UnreadableOpinion(words, line.name)
    return int(value)


def _text_from(name: str, value: Any) -> str:
    text = str(value or "").replace("\r\n", "\n").strip()
    if len(text) > TEXTS[name]:
        noun = name.replace("_", " ")
        raise UnreadableOpinion(f"The {noun} has {len(text):,} characters; at most {TEXTS[name]:,} are kept.", name)
    if "\x00" in text:
        raise UnreadableOpinion(f"The {name.replace('_', ' ')} holds a zero byte, which cannot be kept.", name)
    return text


def opinion_of(review: Review) -> dict[str, Any]:
    """The same fields as a row has them."""
    return {name: getattr(review, name) for name in FIELDS}


def in_words(review: Review) -> list[tuple[str, str]]:
    """What is filled in, each with what it is called."""
    found = [(line.question, getattr(review, line.name)) for line in LINES]
    found += [("Verdict", review.get_verdict_display()), ("Corrected label", review.corrected_label)]
    return [(name, str(value)) for name, value in [*found, ("Note", review.note)] if value]


def missing(review: Review) -> list[str]:
    """What has to be filled in before it can be submitted, in words."""
    lines = [line.question.rstrip("?") for line in LINES if getattr(review, line.name) is None]
    return lines if review.verdict else [*lines, "Verdict"]
