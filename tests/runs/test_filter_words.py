"""The filters of a list as a sentence."""

from __future__ import annotations

import pytest

from experiments.runs.filter_words import describe_filter


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "All runs"),
        (
            {"status": "concluded", "model": "toybox", "layer": "layer4", "check": ">=0.5"},
            "Concluded runs of toybox layer4 with a score of at least 0.5",
        ),
        ({"status": "limit_reached", "unit": "7"}, "Runs of unit 7 that reached a limit"),
        ({"check": "<0.2", "verdict": "accept"}, "Runs with the verdict “accepted” with a score below 0.2"),
        ({"run": "12,15"}, "Runs from runs 12, 15"),
        ({"run": ",".join(map(str, range(1, 40)))}, "Runs from a choice of 39"),
        ({"backbone": "openai:gpt-4o", "since": "2026-01-01"}, "Runs by gpt-4o since 2026-01-01"),
        ({"check": "<b>", "nobody-knows": "x" * 999}, f"Runs with a score “<b>” with nobody-knows “{'x' * 60}…”"),
    ],
)
def test_a_filter_is_said_as_a_person_would(given: dict[str, str], words: str) -> None:
    assert describe_filter("runs", given) == words
