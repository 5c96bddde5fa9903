"""Export all answers of a desk as CSV, including items without an answer."""

from __future__ import annotations

import csv
import io

from django.http import HttpResponse

from experiments.core.errors import StateConflict
from experiments.core.spreadsheets import cell
from experiments.judging.desk import Desk


def send_answers(desk: Desk) -> HttpResponse:
    """Return the CSV file. Raises StateConflict while the answers could bias judges, and if there are none."""
    if words := desk.explain_hidden():
        raise StateConflict(words)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([cell(name) for name in desk.COLUMNS])
    # `cell` disarms texts that a spreadsheet would run as a formula.
    writer.writerows([cell(each) for each in row] for row in desk.list_rows())
    # With a byte order mark: without it, Excel reads UTF-8 as the local encoding.
    response = HttpResponse(out.getvalue().encode("utf-8-sig"), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="maia-{desk.NOUN}-{desk.row.pk}-answers.csv"'
    # Names in the file are user input: no browser may guess that it is HTML
    response["X-Content-Type-Options"] = "nosniff"
    return response
