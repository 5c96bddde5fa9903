"""What people said of the images of a check as CSV, with every image that nobody judged: nothing is left out."""

from __future__ import annotations

import csv
import io
from typing import Any

from django.http import HttpResponse

from experiments.core.errors import StateConflict
from experiments.core.spreadsheets import cell
from experiments.models import LabelCheck, PresenceAnswer, PresenceQuestion

COLUMNS = (
    "check", "label", "position", "image", "dataset_position", "draws", "weight", "expected",
    "judge", "answer", "seconds", "time",
)  # fmt: skip


def send_answers(check: LabelCheck) -> HttpResponse:
    """The file. Raises StateConflict while somebody could still be led by it, and where people were never asked."""
    if check.waits_for_people:
        raise StateConflict("What others say is hidden while people judge; once the check goes on, it can be had here.")
    if not check.questions.exists():
        raise StateConflict("People were not asked about images of this check.")
    out = io.StringIO()
    _write_answers(check, out)
    response = HttpResponse(out.getvalue().encode("utf-8-sig"), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="maia-check-{check.pk}-answers.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _write_answers(check: LabelCheck, out: io.StringIO) -> None:
    """The file; an image without an answer has one line with empty columns."""
    writer = csv.writer(out)
    writer.writerow([cell(name) for name in COLUMNS])
    for question in check.questions.prefetch_related("answers__user"):
        known = _question_cells(check, question)
        for cells in [_answer_cells(each) for each in question.answers.all()] or [[None] * 4]:
            writer.writerow([cell(each) for each in [*known, *cells]])


def _question_cells(check: LabelCheck, question: PresenceQuestion) -> list[Any]:
    natural = question.expected is None
    sampled = [question.draws, question.weight] if natural else [None, None]
    place = [question.position, question.image_id, question.probe_position]
    return [check.pk, check.text, *place, *sampled, question.expected]


def _answer_cells(answer: PresenceAnswer) -> list[Any]:
    return [answer.user.get_username(), answer.answer, answer.seconds, answer.created]
