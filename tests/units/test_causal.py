"""A causal check on the page of a unit: what can be asked, what is refused, what is shown; and the API."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from experiments.core.errors import InvalidInput
from experiments.models import CausalCheck, Dataset, Job, JobStatus, Layer, Role, Unit, VisionModelRow
from experiments.units.causal import draw_check, read_question, read_units
from tests.support.api_world import Script
from tests.support.causal_checks import make_causal_check, make_report
from tests.support.people import member
from tests.support.queued import waiting_in
from tests.support.unit_pages import RESNET, layer_of
from workers.record.causal import CausalReport, ControlEffect, ImageEffect

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def photos(resnet: VisionModelRow) -> Dataset:
    row = Dataset.objects.get(key="photos")
    row.available = True
    row.save()
    return row


def page_of(client: Client, number: int = 7, layer: str = "layer4", **query: Any) -> str:
    response = client.get(reverse("unit", args=[RESNET, layer, number]), query)
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def send(client: Client, layer: str = "layer4", **form: str) -> Any:
    return client.post(reverse("unit-causal", args=[RESNET, layer, 7]), {"dataset": "photos", **form})


# --- asking -------------------------------------------------------------------------------------------


def test_a_researcher_asks_and_a_worker_is_told(
    as_owner: Client, resnet: VisionModelRow, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    assert "Causal check" in page_of(as_owner)
    with django_capture_on_commit_callbacks(execute=True):
        response = send(as_owner, change="2", reference="mean", others="9, 11-12")
    row = CausalCheck.objects.get()
    assert response["Location"] == f"{row.get_absolute_url().partition('?')[0]}?dataset=photos&causal={row.pk}#causal"
    assert (row.units, row.factor, row.reference) == ([7, 9, 11, 12], 2.0, "mean")
    assert list(row.changed_units.values_list("number", flat=True)) == [7, 9, 11, 12]
    assert waiting_in(redis_url, "long") == [f"({row.job_id},)"]
    send(as_owner, change="2", reference="mean", others="9, 11-12")
    assert Job.objects.count() == 1
    for number in (7, 11):
        assert "Waiting for a worker" in page_of(as_owner, number) or "No worker has been seen" in page_of(
            as_owner, number
        )


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"change": "other", "factor": "nan"}, "Write the factor as a number from 0 to 10"),
        ({"change": "other", "factor": "-1"}, "factor -1 is out of range"),
        ({"change": "other", "factor": "1"}, "changes nothing"),
        ({"change": "other"}, "Write the factor"),
        ({"change": "x"}, "Write the factor"),
        ({"reference": "median"}, "no reference “median”"),
        ({"others": "2048"}, "layer4 has no unit 2048. Name units from 0 to 2,047"),
        ({"others": "5-3"}, "“5-3” names no units"),
        ({"others": "a"}, "“a” names no units"),
        ({"others": "٣"}, "“٣” names no units"),
        ({"others": "0-1500"}, "1,501 units are too many"),
        ({"others": "0-9" * 2_000}, "at most 2,000 characters"),
        ({"dataset": "gone"}, "No worker can use a dataset 'gone'"),
    ],
)
def test_what_makes_no_sense_is_said_beside_what_was_typed(
    as_owner: Client, no_redis: None, form: dict[str, str], says: str
) -> None:
    response = send(as_owner, **form)
    page = html.unescape(response.content.decode())
    assert (response.status_code, says in page) == (400, True)
    others = form.get("others", "")
    if 0 < len(others) < 100:
        assert f'name="others" value="{others}"' in page
    assert not CausalCheck.objects.exists()


def test_stretches_of_units_are_read_with_the_unit_itself(resnet: VisionModelRow) -> None:
    layer = layer_of(resnet)
    assert read_units(layer, 7, " 3 , 5 - 8,3,,") == (3, 5, 6, 7, 8)
    assert read_units(layer, 7, "") == (7,)
    assert read_question(layer, 7, {}).factor == 0
    with pytest.raises(InvalidInput):
        read_units(layer, 7, "1-999999999")


def test_a_viewer_sees_no_form_and_sends_nothing(client: Client, resnet: VisionModelRow, photos: Dataset) -> None:
    client.force_login(member("viewer", "VIEWER"))
    assert "A researcher of your team can start one here" in page_of(client)
    make_causal_check(layer_of(resnet), photos, 7)
    page = page_of(client)
    assert ("causal-form" not in page, "cone" in page) == (True, True)
    client.raise_request_exception = False
    assert send(client).status_code == 403


# --- what cannot be asked -----------------------------------------------------------------------------


def make_layer(model: VisionModelRow, kind: str) -> Layer:
    return Layer.objects.create(model=model, position=9, name=kind, path=kind, kind=kind, units=9)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("logit", "A class is an output of the model itself"),
        ("concept", "A synthetic neuron is built on a detector"),
        ("function", "A function is no part of a network"),
    ],
)
def test_where_nothing_follows_the_page_says_why(
    as_owner: Client, no_redis: None, resnet: VisionModelRow, kind: str, says: str
) -> None:
    make_layer(resnet, kind)
    page = page_of(as_owner, layer=kind)
    assert (says in page, "causal-form" in page) == (True, False)
    assert says in html.unescape(send(as_owner, kind).content.decode())
    assert not CausalCheck.objects.exists()


def test_what_a_worker_found_of_a_layer_is_said_on_all_its_units(
    as_owner: Client, resnet: VisionModelRow, photos: Dataset
) -> None:
    row = make_causal_check(layer_of(resnet), photos, 7)
    CausalCheck.objects.update(impossible="It has no output.", measured=None, result={})
    for number in (7, 8):
        page = page_of(as_owner, number)
        assert ("It has no output." in page, "causal-form" in page) == (True, False)
    VisionModelRow.objects.update(revision="2")
    assert "causal-form" in page_of(as_owner, 8), "of other weights nothing is known"
    assert row.pk


# --- what is shown ------------------------------------------------------------------------------------


def test_a_result_shows_figures_classes_and_control(as_owner: Client, resnet: VisionModelRow, photos: Dataset) -> None:
    make_causal_check(layer_of(resnet), photos, 7, 9)
    page = page_of(as_owner)
    for words in (
        "Unit 7 with 9",
        "0.206 [0.15, 0.26]",
        "0.02 (0.01 to 0.03)",
        "99.0 % (98.0 % to 100.0 %)",
        "-0.900 [-1.100, -0.700]",
        "unclear",
        "300 probe images",
        "in these images only",
    ):
        assert words in page, words
    assert "Of 41 classes, <b>1</b> fall and <b>0</b> rise" in " ".join(page.split())
    assert '<svg class="plot intervals' in page
    assert "style=" not in page.partition('id="causal"')[2].partition("</section>")[0]


def test_the_plot_holds_every_class_against_no_change(resnet: VisionModelRow, photos: Dataset) -> None:
    drawn = draw_check(make_causal_check(layer_of(resnet), photos, 7))
    assert drawn is not None
    assert drawn.plot is not None
    assert [dot.words.partition(":")[0] for dot in drawn.plot.dots] == ["cone", "sand"]
    assert [each.kind for each in drawn.plot.lines if "level" in each.kind] == ["level"]
    assert [words for _, words in drawn.plot.legend] == ["falls", "unclear"]


def test_a_unit_that_never_varies_says_so_without_figures(
    as_owner: Client, resnet: VisionModelRow, photos: Dataset
) -> None:
    make_causal_check(layer_of(resnet), photos, 7, report=CausalReport(constant=(7,), why="Never active at all."))
    page = page_of(as_owner)
    assert ("Never active at all." in page, "Divergence" in page) == (True, False)


def test_one_without_control_or_classes_is_drawn(as_owner: Client, resnet: VisionModelRow, photos: Dataset) -> None:
    few = ImageEffect(images=3, control=ControlEffect(why="only 2 other units of the layer are live"))
    report = make_report(measure="change", everywhere=few, most_active=few, draws=())
    make_causal_check(layer_of(resnet), photos, 7, report=report)
    page = page_of(as_owner)
    assert "only 2 other units of the layer are live" in page
    assert "rise beyond chance" not in page


@pytest.mark.parametrize("stored", [{}, {"everywhere": 3}, {"draws": [[1e400]]}, {"measure": "joy"}])
def test_a_result_that_makes_no_sense_breaks_no_page(
    as_owner: Client, resnet: VisionModelRow, photos: Dataset, stored: dict[str, Any]
) -> None:
    row = make_causal_check(layer_of(resnet), photos, 7)
    row.result = {key: value for key, value in stored.items() if key != "draws"}
    row.save()
    assert "Causal check" in page_of(as_owner)


def test_one_that_waits_is_asked_for_by_htmx_and_can_be_stopped(
    as_owner: Client, no_redis: None, resnet: VisionModelRow
) -> None:
    send(as_owner)
    row = CausalCheck.objects.get()
    part = as_owner.get(
        reverse("unit", args=[RESNET, "layer4", 7]), {"causal": row.pk}, HTTP_HX_REQUEST="true", HTTP_HX_TARGET="causal"
    ).content.decode()
    assert part.lstrip().startswith('<div id="causal"')
    assert "every 1500ms" in part
    stopped = as_owner.post(reverse("settings-job-stop", args=[row.job_id]))
    assert stopped["Location"] == row.get_absolute_url()
    assert "A new check starts from the beginning" in page_of(as_owner)
    Job.objects.update(status=JobStatus.FAILED, result="No images.")
    assert "No images." in page_of(as_owner)


def test_several_checks_are_listed_and_one_is_chosen(as_owner: Client, resnet: VisionModelRow, photos: Dataset) -> None:
    old = make_causal_check(layer_of(resnet), photos, 7, 9)
    make_causal_check(layer_of(resnet), photos, 7)
    assert "Unit 7 with 9" not in page_of(as_owner)
    assert "Unit 7 with 9" in page_of(as_owner, causal=old.pk)
    for odd in ("0", "-1", "9" * 40, "x"):
        page_of(as_owner, causal=odd)


# --- the API ------------------------------------------------------------------------------------------


def test_a_script_asks_and_reads(owner: User, no_redis: None, resnet: VisionModelRow) -> None:
    layer = layer_of(resnet)
    path = f"/layers/{layer.pk}/units/7/causal-checks"
    asked = Script(owner).post(path, {"dataset": "photos", "others": "9", "factor": 2, "seed": 3})
    assert (asked.status_code, asked.json()["status"], asked.json()["units"]) == (202, "queued", [7, 9])
    assert Script(owner).post(path, {"dataset": "photos", "others": "9", "factor": 2, "seed": 3}).json() == asked.json()
    assert [each["id"] for each in Script(owner).get(path).json()["items"]] == [asked.json()["id"]]
    found = Script(owner).get(f"/causal-checks/{asked.json()['id']}").json()
    assert (found["measured"], found["result"], found["factor"]) == (None, {}, 2.0)
    measured = make_causal_check(layer, Dataset.objects.get(key="photos"), 7)
    result = Script(owner).get(f"/causal-checks/{measured.pk}").json()["result"]
    assert result["everywhere"]["classes"][0]["direction"] == "falls"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"dataset": "photos", "factor": "2"}, 422),
        ({"dataset": "photos", "factor": 1}, 422),
        ({"dataset": "photos", "factor": 11}, 422),
        ({"dataset": "photos", "others": "99999"}, 422),
        ({"dataset": "photos", "unit": 3}, 422),
        ({"dataset": "gone"}, 409),
        ({}, 422),
    ],
)
def test_a_script_is_refused_with_a_reason(
    owner: User, no_redis: None, resnet: VisionModelRow, body: dict[str, Any], status: int
) -> None:
    path = f"/layers/{layer_of(resnet).pk}/units/7/causal-checks"
    assert Script(owner).post(path, body).status_code == status
    assert not Unit.objects.exists()


def test_a_viewers_script_may_read_alone(resnet: VisionModelRow, no_redis: None) -> None:
    viewer = member("viewer", Role.VIEWER.name)
    path = f"/layers/{layer_of(resnet).pk}/units/7/causal-checks"
    assert Script(viewer).get(path).status_code == 200
    assert Script(viewer).post(path, {"dataset": "photos"}).status_code == 403
