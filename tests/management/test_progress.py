"""How far long work is: one line of a terminal, or a line now and then in a file."""

from __future__ import annotations

import pytest

from experiments.management import prepared
from experiments.management.prepared import ProgressLine
from workers.errors import Cancelled


def test_a_file_sees_a_line_now_and_then_with_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr(prepared.time, "monotonic", lambda: now)
    line = ProgressLine(piped=30.0)
    for done in range(7):
        line("units", done, 60)
        now += 20
    monkeypatch.undo()
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "units: 0 of 60",
        "units: 2 of 60",
        "units: 4 of 60, about 19 min left",
        "units: 6 of 60, about 18 min left",
    ]


def test_a_file_sees_nothing_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine()
    line("units", 0, 60)
    line.stop.set()
    with pytest.raises(Cancelled):
        line("units", 1, 60)
    assert capsys.readouterr().err == ""
