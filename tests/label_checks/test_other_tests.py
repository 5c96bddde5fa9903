"""Detection, intruder and simulation on the page of a check, in the API and the glossary; of old and broken results."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from experiments.label_checks import hard_tests
from experiments.label_checks.other_tests import read_tests
from experiments.models import CheckStatus, LabelCheck
from tests.support import trials
from tests.support.people import member, signed_in
from tests.support.seeding import evaluations
from workers.record.estimates import Estimate
from workers.record.other_tests import (
    Confusion,
    DetectionResult,
    FuzzingResult,
    HardNegativesResult,
    IntruderResult,
    OtherTests,
    SimulationResult,
)

pytestmark = pytest.mark.django_db
DETECTED = DetectionResult(
    Estimate(0.8, 0.7, 0.9, 150),
    0.82,
    precision=0.9,
    recall=0.7,
    f1=0.79,
    failed=Estimate(0.04, 0.02, 0.08, 150),
    confusion=Confusion(70, 26, 5, 43, 4, 2),
    deciles=tuple(Estimate(each / 10, 0.0, 1.0, 10) for each in range(10)),
    activating=310,
    images=1_000,
    threshold=2.5,
)


@pytest.fixture
def viewer(db: None) -> Client:
    return signed_in(member("viewer", "VIEWER"))


@pytest.fixture
def check(db: None) -> LabelCheck:
    return evaluations.make_check(trials.unit(1), "red balls", CheckStatus.DONE, Random(1))


def page(client: Client, check: LabelCheck) -> str:
    return str(client.get(check.get_absolute_url()).content.decode())


def test_the_page_tells_value_chance_and_what_a_figure_is_blind_to(viewer: Client, check: LabelCheck) -> None:
    shown = page(viewer, check)
    section = shown[shown.index("Other tests") : shown.index("Generated images")]
    for words in ("balanced accuracy", "Intruder test", "explained variance", "0.20", "Count as wrong".lower()):
        assert words in section
    assert section.count("It need not fall when the label is too broad.") == 4
    for words in (hard_tests.ALIKE_BLIND, hard_tests.NEIGHBOURS_BLIND, hard_tests.FUZZING_BLIND):
        assert words in section
    assert "respond with this one: 31 (r 0.42)" in section
    assert "for a judge who answers yes or no it is r again" in section
    assert "images activate the unit: above its mask threshold, 2.50." in section
    assert section.count("<svg") == 1


def test_a_check_from_before_has_no_such_section(viewer: Client, check: LabelCheck) -> None:
    known = check.result["natural"]
    for tests in (None, "text", {"detection": 3}, {"detection": {"deciles": [{"value": "high"}]}}):
        LabelCheck.objects.filter(pk=check.pk).update(result={"natural": {**known, "other_tests": tests}})
        assert "Other tests" not in page(viewer, check)
        answer = viewer.get(reverse("api:read_label_check", args=[check.pk])).json()
        assert answer["other_tests"] is None


def test_the_api_has_them_as_a_part_of_the_check(viewer: Client, check: LabelCheck) -> None:
    check.refresh_from_db()
    answer = viewer.get(reverse("api:read_label_check", args=[check.pk])).json()
    assert answer["other_tests"] == check.result["natural"]["other_tests"]
    assert len(answer["other_tests"]["detection"]["deciles"]) == 10
    assert "other_tests" not in answer["natural"]
    schema = viewer.get("/api/v1/openapi.json").json()["components"]["schemas"]
    assert "balanced_accuracy" in schema["DetectionResult"]["properties"]


def test_the_glossary_explains_the_words(viewer: Client) -> None:
    shown = viewer.get(reverse("glossary")).content.decode()
    for key in ("detection", "intruder-test", "simulation-score", "hard-negatives", "fuzzing"):
        assert f'id="word-{key}"' in shown


def test_rows_counts_and_curve_are_those_of_the_result() -> None:
    found = read_tests(OtherTests(DETECTED, IntruderResult(Estimate(0.6, 0.5, 0.7, 50), failed=3)))
    assert found is not None
    rows = {row.name: row for row in found.rows}
    assert rows["Failed"].estimate.value == 0.04
    assert "3 of 50 sets had an unread answer" in rows["Intruder test"].says
    assert found.counts == [("Activate the unit", 70, 26, 4), ("Do not", 5, 43, 2)]
    assert found.curve is not None
    assert found.curve.note.endswith("0.10 are described.")
    assert len(found.curve.dots) == len(found.curve.table.rows if found.curve.table else ()) == 10
    assert found.activating.startswith("310 of 1,000")


def test_hard_negatives_and_fuzzing_say_what_they_rest_on_and_what_they_lack() -> None:
    hard = HardNegativesResult(
        Estimate(0.6, 0.5, 0.7, 90), 0.62, drop=Estimate(0.2, 0.1, 0.3, 90), failed=3, images=480
    )
    lack = HardNegativesResult(Estimate(why="no other unit goes with it"))
    fuzzing = FuzzingResult(Estimate(0.9, 0.8, 0.95, 80), cover=0.08, left_out=2, dimmed=True)
    found = read_tests(OtherTests(DETECTED, alike=hard, neighbours=lack, fuzzing=fuzzing))
    assert found is not None
    rows = {row.name: row for row in found.rows}
    assert "3 of these images had an unread answer" in rows["Hard negatives, alike"].says
    assert "a tenth of the 480" in rows["Less than detection by"].says
    assert rows["Less than detection by"].estimate.value == 0.2
    assert rows["Hard negatives, neighbours"].reason == "No figure: no other unit goes with it."
    said = rows["Fuzzing, balanced accuracy"].says
    for words in ("8.00 % of its image", "2 images have no second part", "may influence it"):
        assert words in said
    before = read_tests(OtherTests(DETECTED))
    assert before is not None
    assert not any("Hard" in row.name or "Fuzzing" in row.name for row in before.rows)


@pytest.mark.parametrize(
    "tests",
    [
        OtherTests(),
        OtherTests(replace(DETECTED, deciles=(Estimate(float("nan")), Estimate(float("inf"), n=1)) * 9)),
        OtherTests(DetectionResult(Estimate(why="19 images activate the unit, and it takes 20"))),
        OtherTests(simulation=SimulationResult(Estimate(-1e30), Estimate(float("nan")))),
    ],
)
def test_what_could_not_be_measured_is_shown_without_a_curve(viewer: Client, check: LabelCheck, tests: Any) -> None:
    found = read_tests(tests)
    assert found is not None
    assert found.curve is None
    assert all(row.reason == "" or row.reason.startswith("No figure: ") for row in found.rows)
