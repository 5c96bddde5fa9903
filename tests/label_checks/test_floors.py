"""What the page and the API of a check say of floors, corrections and agreement; a check from before shows on."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.test import Client

from experiments.display.label_checks import read_check
from experiments.label_checks.floors import read_lanes, read_rows
from experiments.models import LabelCheck
from tests.support.people import member, signed_in
from workers.record.decoding import encode
from workers.record.estimates import Estimate
from workers.record.figures import figure
from workers.record.label_checks import CorrectedFigures, FloorFigure, FloorSpread, NaturalResult, Reference

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def viewer(db: None) -> Client:
    return signed_in(member("viewer", "VIEWER"))


def text(client: Client, check: LabelCheck) -> str:
    response = client.get(check.get_absolute_url())
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def keep(check: LabelCheck, **fields: object) -> NaturalResult:
    """The check with these fields of its natural result."""
    found = read_check(check)
    assert found.natural is not None
    natural = replace(found.natural, **fields)  # type: ignore[arg-type]
    LabelCheck.objects.filter(pk=check.pk).update(result=encode(replace(found, natural=natural)))
    return natural


def floors() -> dict[str, object]:
    labels = tuple(Reference(f"the label “{HOSTILE} {n}”", n / 100, 0.1, kind="label") for n in range(10))
    unit = Reference("unit 5, drawn at random", 0.07, None, kind="unit")
    figure = FloorFigure(0.045, 0.03, 0.0, 0.09, Estimate(0.61, 0.52, 0.7, 1000))
    few = FloorFigure(0.07, None, 0.07, 0.07, Estimate(0.6, n=1000, why="too few floors for an interval"))
    spreads = (FloorSpread("label", 10, figure, figure), FloorSpread("unit", 1, few, FloorFigure()))
    return {"floors": (*labels, unit), "floor_spreads": spreads}


def test_floors_of_a_kind_are_one_band_and_one_line_of_words(viewer: Client, done: LabelCheck) -> None:
    natural = keep(done, **floors())
    page = text(viewer, done)
    assert f"floor, 10 labels of other units: mean {figure(0.045)}, {figure(0.0)} to {figure(0.09)}" in page
    assert f"floor, 1 unit at random: {figure(0.07)}" in page
    assert HOSTILE not in page
    assert page.count("floor: ") == 0
    assert f"{figure(0.52)} to {figure(0.7)}" in page
    assert "too few floors for an interval" in page
    lane = read_lanes(natural, "pearson")[0]
    assert (len(lane.ticks), lane.start < lane.mean < lane.end) == (10, True)
    assert [each.kind for each in read_lanes(natural, "auprc")] == ["label"]
    table = re.findall(r"<td>the label|<td>unit 5", page)
    assert len(table) == 11


def test_a_check_from_before_shows_its_floors_one_by_one(viewer: Client, done: LabelCheck) -> None:
    page = text(viewer, done)
    assert "floor: label of unit 31: green cones" in page
    assert "Label less floor" not in page
    assert "r, corrected" not in page


def test_floors_of_no_known_kind_are_shown_as_they_are(viewer: Client, done: LabelCheck) -> None:
    spread = FloorSpread("dog", 3, FloorFigure(0.1), FloorFigure())
    natural = keep(done, floors=(Reference("a dog", 0.1, 0.1, kind="dog"),), floor_spreads=(spread,))
    assert read_rows(natural) == []
    assert "floor: a dog" in text(viewer, done)


def test_r_corrected_has_a_row_of_its_own_beside_r(viewer: Client, done: LabelCheck) -> None:
    keep(done, corrected=CorrectedFigures(Estimate(0.777, 0.666, 0.888, 1000), Estimate(0.123, 0.1, 0.2, 1000)))
    page = text(viewer, done)
    assert "r, corrected for the judge&#x27;s errors" in page
    assert f"{done.pearson:.3g}"[:4] in page
    for words in (figure(0.777), f"{figure(0.666)} to {figure(0.888)}", "Base rate, corrected"):
        assert words in page
    answer = viewer.get(f"/api/v1/checks/{done.pk}").json()
    assert answer["pearson"] == done.pearson
    assert answer["natural"]["corrected"]["pearson"]["value"] == 0.777


def test_what_cannot_be_corrected_says_why_and_has_no_row(viewer: Client, done: LabelCheck) -> None:
    nothing = Estimate(why="cannot be corrected: <b>false positives</b>")
    keep(done, corrected=CorrectedFigures(nothing, nothing))
    page = text(viewer, done)
    assert "cannot be corrected: &lt;b&gt;false positives" in page
    assert "r, corrected for the judge" not in page


def test_agreement_is_shown_with_what_is_beyond_chance(viewer: Client, done: LabelCheck) -> None:
    keep(done, agreement=Estimate(0.91, 0.85, 0.95, 90), agreement_alpha=Estimate(0.432, 0.3, 0.5, 90))
    page = text(viewer, done)
    assert f"s alpha, {figure(0.3)} to {figure(0.5)}" in page
    assert figure(0.432) in page
    keep(done, agreement=Estimate(1.0, 0.96, 1.0, 90), agreement_alpha=Estimate(n=90, why="All gave the same"))
    assert "All gave the same" in text(viewer, done)


def test_the_api_tells_floors_and_their_spread(viewer: Client, done: LabelCheck) -> None:
    keep(done, **floors())
    natural = viewer.get(f"/api/v1/checks/{done.pk}").json()["natural"]
    assert len(natural["floors"]) == 11
    assert natural["floor_spreads"][0]["pearson"]["above"]["low"] == 0.52
    assert natural["floors"][0]["kind"] == "label"
