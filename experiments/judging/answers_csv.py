"""All answers of a desk as CSV, with every item that nobody judged: nothing is left out."""

from __future__ import annotations

import csv
import io

from django.http import HttpResponse

from experiments.core.errors import StateConflict
from experiments.core.spreadsheets import cell
from experiments.judging.desk import Desk


def send_answers(desk: Desk) -> HttpResponse:
    """The file. Raises StateConflict while somebody could still be led by it, and where there is nothing to tell."""
    if words := desk.explain_hidden():
        raise StateConflict(words)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([cell(name) for name in desk.COLUMNS])
    writer.writerows([cell(each) for each in row] for row in desk.list_rows())
    response = HttpResponse(out.getvalue().encode("utf-8-sig"), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="maia-{desk.NOUN}-{desk.row.pk}-answers.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
