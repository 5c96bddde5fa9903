"""The title of a program is its docstring's first line, and never more than plain words."""

from __future__ import annotations

import pytest

from tests import ROOT
from workers.record.titles import MAX_TITLE_CHARS, read_title
from workers.toybox.scientist.replies import EXEMPLARS_PROGRAM

FUNCTION = 'import math\n\n\ndef run_experiment(system, tools) -> None:\n    """{}"""\n    pass\n'


@pytest.mark.parametrize(
    ("program", "title"),
    [
        ('"""Colour or shape?"""\nprint(1)', "Colour or shape?"),
        (
            "# a note\n\n'''red balls, with and without grass.\n\nMore words.\n'''\n",
            "Red balls, with and without grass",
        ),
        (FUNCTION.format("Step refine: near misses of a red ball"), "Near misses of a red ball"),
        (FUNCTION.format("Experiment 3 - edits at night"), "Edits at night"),
        (FUNCTION.format("Steps of a staircase"), "Steps of a staircase"),
        ("def run_experiment(system, tools):\n    print('no words of its own')", ""),
        ("print('nothing')", ""),
        ('"""never closed', ""),
        ('""""""', ""),
        ("", ""),
    ],
)
def test_a_program_is_called_what_its_docstring_says(program: str, title: str) -> None:
    assert read_title(program) == title


def test_the_scripted_scientist_names_its_programs() -> None:
    assert read_title(EXEMPLARS_PROGRAM)


def test_the_agent_is_asked_for_a_title() -> None:
    assert "docstring" in (ROOT / "workers/agent/prompts/system.md").read_text()


def test_a_title_is_short_and_holds_nothing_that_cannot_be_seen() -> None:
    title = read_title('"""' + "red\u202e\x1b[31m\tballs and\u200b " * 40 + '"""')
    assert len(title) <= MAX_TITLE_CHARS
    assert title.startswith("Red[31m balls and red")
    assert title.endswith("…")


@pytest.mark.parametrize("piece", ["\n", " \n", "#\n", "'", '"', "\\", "def run_experiment(:\n"])
def test_a_hostile_head_takes_no_time(piece: str) -> None:
    assert read_title(piece * 100_000) == ""
