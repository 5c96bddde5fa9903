"""People's answers about a check's images as rows of a CSV file, including images without answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from experiments.models import LabelCheck, PresenceAnswer, PresenceQuestion

COLUMNS = (
    "check", "label", "position", "image", "dataset_position", "draws", "weight", "expected",
    "judge", "answer", "seconds", "time",
)  # fmt: skip


def list_rows(check: LabelCheck) -> Iterator[Sequence[Any]]:
    """Yield a row for each answer, and a row with empty columns for each image without one."""
    for question in check.questions.prefetch_related("answers__user"):
        known = _question_cells(check, question)
        # Unjudged images stay in the file, because the weights refer to the whole sample
        for cells in [_answer_cells(each) for each in question.answers.all()] or [[None] * 4]:
            yield [*known, *cells]


def _question_cells(check: LabelCheck, question: PresenceQuestion) -> list[Any]:
    natural = question.expected is None
    sampled = [question.draws, question.weight] if natural else [None, None]
    place = [question.position, question.image_id, question.probe_position]
    return [check.pk, check.text, *place, *sampled, question.expected]


def _answer_cells(answer: PresenceAnswer) -> list[Any]:
    return [answer.user.get_username(), answer.answer, answer.seconds, answer.created]
