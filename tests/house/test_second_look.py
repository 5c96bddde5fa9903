"""A test that fails once is run again alone; one that fails twice, or must never fail, is red."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.second_look import HEADING, RED_AT_ONCE

more = pytest.mark.more
"""Each starts pytest up to five times."""

FAILS_ONCE = """
from pathlib import Path

def test_{0}():
    ran = Path(__file__).with_suffix(".{0}")
    first, _ = not ran.exists(), ran.touch()
    assert not first, "an accident in {0}"
"""
FAILS_ALWAYS = """
def test_broken():
    assert 1 == 2, "a bug"
"""
PASSES = """
def test_sound():
    pass
"""


def run(folder: Path, **files: str) -> tuple[int, str]:
    """Run the planted files as `make test` runs ours, and return the exit code and what was printed."""
    for name, text in files.items():
        path = folder / "tests" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    options = ["--rootdir", str(folder), "-c", str(folder / "pytest.ini"), "-p", "no:django", "-p", "no:asyncio"]
    command = [sys.executable, "-m", "tests.support.second_look", *options, "--numprocesses", "1", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@more
def test_an_accident_is_green_and_told_with_its_message(tmp_path: Path) -> None:
    code, printed = run(tmp_path, test_one=FAILS_ONCE.format("one"), test_sound=PASSES)
    assert code == 0, printed
    told = printed.partition(HEADING)[2]
    assert "tests/test_one.py::test_one" in told
    assert "an accident in one" in told
    assert "1 passed" in printed, "the sound test is not run again"


@more
def test_what_fails_twice_is_red(tmp_path: Path) -> None:
    code, printed = run(tmp_path, test_one=FAILS_ONCE.format("one"), test_broken=FAILS_ALWAYS)
    assert code == 1, printed
    assert HEADING not in printed
    assert "a bug" in printed.partition("A second look at 2")[2]


@more
def test_more_than_three_failures_are_red_at_once(tmp_path: Path) -> None:
    code, printed = run(tmp_path, test_many="".join(FAILS_ONCE.format(name) for name in "abcd"))
    assert code == 1, printed
    assert "second look" not in printed


@more
def test_a_hole_in_the_sandbox_is_red_at_once(tmp_path: Path) -> None:
    code, printed = run(tmp_path, sandbox__test_jail=FAILS_ONCE.format("jail"))
    assert code == 1, printed
    assert "second look" not in printed


@more
def test_a_file_that_cannot_be_read_is_red_at_once(tmp_path: Path) -> None:
    code, printed = run(tmp_path, test_typo="import nowhere_at_all", test_one=FAILS_ONCE.format("one"))
    assert code != 0, printed
    assert "second look" not in printed


@pytest.mark.parametrize("start", RED_AT_ONCE)
def test_each_place_without_a_second_look_exists(start: str) -> None:
    assert list(ROOT.glob(f"{start}*"))
