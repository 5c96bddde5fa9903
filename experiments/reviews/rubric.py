"""The rubric: five criteria scored from 1 to 5, a verdict, a corrected label and a note. Parses the form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms

from experiments.core.errors import InvalidInput
from experiments.models import Review, ReviewVerdict
from experiments.models.review import LABEL_CHARS, NOTE_CHARS


@dataclass(frozen=True)
class RubricLine:
    """A criterion. `low` and `high` say what 1 and 5 mean."""

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
"""Text fields -> maximum length."""
FIELDS = (*NAMES, "verdict", *TEXTS)


class OpinionTexts(forms.Form):
    """What a reviewer writes beside the scores."""

    corrected_label = forms.CharField(help_text="if it should be another", required=False, max_length=LABEL_CHARS)
    note = forms.CharField(required=False, max_length=NOTE_CHARS, widget=forms.Textarea({"rows": 3}))


class UnreadableOpinion(InvalidInput):
    """A field of a review is invalid, so nothing was stored. The message says what is valid."""


def opinion_from(data: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the fields of a review from a form. Missing fields are empty. Raises UnreadableOpinion."""
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
    # As text: a form sends "3", the API 3, and 3.0 is neither.
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
    """Return the fields of a stored review."""
    return {name: getattr(review, name) for name in FIELDS}


def list_values(review: Review) -> list[tuple[str, str]]:
    """Return the name and value of each field that is filled in."""
    found = [(line.question, getattr(review, line.name)) for line in LINES]
    found += [("Verdict", review.get_verdict_display()), ("Corrected label", review.corrected_label)]
    return [(name, str(value)) for name, value in [*found, ("Note", review.note)] if value]


def list_missing(review: Review) -> list[str]:
    """Return the names of fields that must be filled in before submitting."""
    lines = [line.question.rstrip("?") for line in LINES if getattr(review, line.name) is None]
    return lines if review.verdict else [*lines, "Verdict"]
