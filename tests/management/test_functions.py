"""`manage.py functions`: baselines measured on fresh functions."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("family", ["numeric", "strings"])
def test_most_fresh_functions_are_found_out(capsys: pytest.CaptureFixture[str], family: str) -> None:
    call_command("functions", "--family", family, "--functions", "5", "--seeds", "1,0,1", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["functions"], found["seeds"], found["baseline"]) == (10, [0, 1], "scripted baseline")
    shares = found["shares"]
    assert shares["all"]["value"] >= 0.7
    assert shares["all"]["n"] == sum(shares[name]["n"] for name in ("one atom", "two atoms") if name in shares) == 10
    assert len(found["failures"]) == round(10 * (1 - shares["all"]["value"]))


def test_the_table_has_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("functions", "--functions", "3")
    out = capsys.readouterr().out
    assert "3 functions of ours (numeric), scripted baseline" in out
    assert "all" in out
    assert "[" in out


@pytest.mark.parametrize("seeds", ["", "a", "1,,2", "-1", "1" * 7, ",".join(["1"] * 101)])
def test_seeds_that_are_none_are_refused(seeds: str) -> None:
    with pytest.raises(CommandError, match="whole numbers below 1,000,000"):
        call_command("functions", "--functions", "1", "--seeds", seeds)
