"""`manage.py demo --small --once` as a process of its own: played by a worker, twice, and whole afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.installation import Installation
from tests.support.state_folders import copied, with_tables

MINUTES = 15
TABLES = (
    "run",
    "event",
    "review",
    "comment",
    "sweep",
    "evaluation",
    "share",
    "study",
    "savedview",
    "image",
    "labelcheck",
)


class Demo(Installation):
    """An installation that fills itself and ends."""

    command = "demo"


def play(state: Path) -> list[int]:
    """How many rows of each kind there are when it has ended."""
    demo = Demo(state, "--small", "--once")
    try:
        assert demo.process.wait(MINUTES * 60) == 0, demo.said()
    finally:
        demo.stop()
    return [demo.rows(f"SELECT count(*) FROM experiments_{table}")[0][0] for table in TABLES]


@pytest.mark.more
def test_a_small_week_is_filled_once_and_is_whole(quick_laboratory: Path, migrated: Path, tmp_path: Path) -> None:
    state = with_tables(migrated, copied(quick_laboratory, tmp_path / "state"))
    first = play(state)
    assert all(first), dict(zip(TABLES, first, strict=True))
    assert play(state) == first
    demo = Demo(state, "--help")
    demo.stop()
    assert "All is well" in demo.manage("verify")
    days = demo.rows("SELECT count(DISTINCT date(created)) FROM experiments_run")[0][0]
    assert days >= 3, "the week has days"
