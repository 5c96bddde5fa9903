"""What evaluations compare: labels that abstain gain nothing, and breadth is no score."""

from __future__ import annotations

import pytest

from experiments.models import Evaluation, EvaluationItem, ItemStatus
from workers.jobs.evaluations.figures import list_medians, score_reader
from workers.jobs.evaluations.synthetic import choose_neurons
from workers.record.evaluations import Figure

Scores = dict[str, float | bool | None]
TESTED: Scores = {"pearson": 0.8, "auprc": 0.85, "generated_auc": 0.9, "base_rate": 0.7, "testable": True}
UNTESTABLE: Scores = {"pearson": None, "auprc": None, "generated_auc": None, "base_rate": None, "testable": False}
NOT_MEASURED: Scores = UNTESTABLE | {"testable": True}
UNSEEN: Scores = NOT_MEASURED | {"base_rate": 0.0}


def item(scores: Scores, status: ItemStatus = ItemStatus.DONE, source: str = "agent") -> EvaluationItem:
    return EvaluationItem(scores=scores, status=status, source=source)


def test_a_broad_label_has_what_it_says_beyond_its_base_rate() -> None:
    assert score_reader("auprc_above")(item(TESTED)) == pytest.approx(0.5)
    assert score_reader("auprc_above")(item(TESTED | {"auprc": 0.7})) == 0
    assert score_reader("auprc_above")(item(TESTED | {"base_rate": 1.0, "auprc": 1.0})) == 0, (
        "of all images it says nothing"
    )


@pytest.mark.parametrize("name", ["pearson", "auprc_above", "generated_auc"])
def test_a_label_that_cannot_be_tested_counts_0_and_one_that_nobody_could_judge_does_not_count(name: str) -> None:
    assert score_reader(name)(item(UNTESTABLE)) == 0
    assert score_reader(name)(item({}, ItemStatus.LACKING)) == 0
    assert score_reader(name)(item(NOT_MEASURED)) is None


def test_a_label_that_no_image_shows_counts_0_on_natural_images_alone() -> None:
    assert score_reader("pearson")(item(UNSEEN)) == 0
    assert score_reader("generated_auc")(item(UNSEEN)) is None


def test_medians_say_how_many_labels_could_be_tested() -> None:
    items = [*(item(TESTED) for _ in range(7)), item(UNTESTABLE), item({}, ItemStatus.LACKING)]
    figures = {figure.key: figure for _, figure in list_medians(items, ["agent"], {"pearson": 0.5})}
    assert (figures["pearson"].value, figures["pearson"].n, figures["pearson"].goal) == (0.8, 9, 0.5)
    assert figures["pearson"].note == "7 of 9 have a label that can be tested; the others count 0"
    assert figures["auprc_above"].goal is None
    whole = list_medians(items[:7], ["agent"])
    assert not any("tested" in figure.note for _, figure in whole)


@pytest.mark.parametrize(
    ("low", "value", "high", "at_most", "verdict"),
    [
        (0.81, 0.85, 0.9, False, "met"),
        (0.79, 0.85, 0.9, False, "not sure"),
        (None, 0.85, None, False, "not sure"),
        (0.7, 0.79, 0.9, False, "not met"),
        (0.0, 0.7, 0.79, True, "met"),
        (0.0, 0.7, 0.81, True, "not sure"),
        (0.0, 0.85, 0.9, True, "not met"),
        (None, None, None, False, ""),
    ],
)
def test_a_goal_is_met_when_the_end_of_the_interval_is_past_it(
    low: float | None, value: float | None, high: float | None, at_most: bool, verdict: str
) -> None:
    assert Figure("a", "A", value, low, high, 9, 0.8, at_most=at_most).verdict == verdict


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("on_toybox")
def test_as_many_neurons_are_measured_as_were_asked_for() -> None:
    for count in (1, 2, 3, 5, 10, 15):
        chosen = [kind for _, kind in choose_neurons(Evaluation(kind="synthetic", seed=3, options={"units": count}))]
        assert len(chosen) == count
        assert chosen.count("mono") in (count // 2, (count + 1) // 2)
