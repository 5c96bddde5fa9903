"""The test of a label in words."""

from __future__ import annotations

from workers.jobs.console import format_event
from workers.record.events import Graded
from workers.record.grades import list_figures, name_verdict, summarise_grade

FAILED = Graded(
    2,
    "large trees",
    pearson=0.78,
    auprc=0.86,
    generated_auc=1.0,
    needed={"generated_auc": 0.9, "pearson": 0.801},
    reachable=0.89,
    direction="too narrow",
)


def test_a_figure_stands_beside_what_it_had_to_reach() -> None:
    figures = list_figures(FAILED)
    assert [each.failed for each in figures] == [False, True, False]
    assert str(figures[1]) == "r over natural images: 0.78, needs 0.80 (0.89 is reachable): too low"
    assert str(figures[2]) == "AUPRC over natural images: 0.86"


def test_a_figure_that_is_just_too_low_is_not_rounded_to_enough() -> None:
    (figure,) = list_figures(Graded(1, "trees", generated_auc=0.8996, needed={"generated_auc": 0.9}))
    assert "0.8996, needs 0.9000: too low" in str(figure)


def test_a_verdict_does_not_hang_on_a_reason_that_is_not_shown() -> None:
    assert name_verdict(FAILED) == "failed"
    assert name_verdict(Graded(1, "trees", passed=True)) == "passed"
    assert name_verdict(Graded(1, "trees")) == name_verdict(Graded(1, "trees", reason="No host.")) != "failed"


def test_the_terminal_and_json_say_the_same() -> None:
    shown, told = format_event(FAILED, "graded"), summarise_grade(FAILED)
    assert f"Graded · {told['verdict']}" in shown
    assert told["explanation"] in shown
    assert all(str(each) in shown for each in list_figures(FAILED))
    assert [each["name"] for each in told["figures"] if each["failed"]] == ["r over natural images"]
