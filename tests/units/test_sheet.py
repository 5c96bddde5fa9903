"""A layer as a contact sheet and as a map: filters, colours, and what is done to the units that somebody chose."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from experiments.models import Job, Label, LabelCheck, Run, Unit, VisionModelRow
from tests.support.blind_runs import LAYER, MODEL, NUMBER, catalogue, queued
from tests.support.people import signed_in
from tests.support.queued import waiting_in
from tests.support.unit_pages import MARKUP, RESNET, asked, labelled, layer_of, measured

pytestmark = pytest.mark.django_db
SHEET = "/units/hf:microsoft~2Fresnet-152/layer4/"


def tiles_of(client: Client, **query: str) -> list[int]:
    """The numbers of the tiles in their order."""
    text = client.get(SHEET, query).content.decode()
    return [int(number) for number in re.findall(r'<input type="checkbox" name="unit" value="(\d+)"', text)]


def scored(model: VisionModelRow, number: int, text: str, r: float, p: float | None = None) -> None:
    unit = labelled(layer_of(model), number, text)
    LabelCheck.objects.create(key=f"{number}", unit=unit, text=text, options={}, pearson=r, p_value=p)


def test_a_tile_shows_exemplar_label_and_score(as_owner: Client, resnet: VisionModelRow) -> None:
    scored(resnet, 3, f"red {MARKUP}", 0.81)
    measured(layer_of(resnet).unit_set.get(number=3))
    text = as_owner.get(SHEET).content.decode()
    assert MARKUP not in text
    tile = text[text.index('value="3"') : text.index('value="4"')]
    assert "thumb-160.webp" in tile
    assert "red &lt;script&gt;" in tile
    assert "r 0.81" in tile


def test_a_large_layer_is_shown_in_pages(as_owner: Client, resnet: VisionModelRow) -> None:
    assert tiles_of(as_owner) == list(range(192))
    assert tiles_of(as_owner, page="11") == list(range(1920, 2048))
    assert 'data-all="0-2047"' in as_owner.get(SHEET).content.decode()


def test_tiles_are_filtered_by_words_state_and_score_and_sorted(as_owner: Client, resnet: VisionModelRow) -> None:
    for number, text, r in ((9, "zebra", 0.9), (4, "ant", 0.3), (7, "dog", 0.6)):
        scored(resnet, number, text, r)
    assert tiles_of(as_owner, q="dog") == [7]
    assert tiles_of(as_owner, state="labelled") == [4, 7, 9]
    assert tiles_of(as_owner, low="0.5") == [7, 9]
    assert tiles_of(as_owner, low="0.2", high="0.7", sort="score") == [7, 4]
    assert tiles_of(as_owner, sort="score")[:3] == [9, 7, 4]
    assert tiles_of(as_owner, sort="worst")[:3] == [4, 7, 9]
    assert tiles_of(as_owner, sort="label")[:4] == [4, 7, 9, 0]
    assert tiles_of(as_owner, low="much") == list(range(192))


def test_units_are_coloured_by_labels_alike_and_by_how_often_they_are_active(
    as_owner: Client, resnet: VisionModelRow
) -> None:
    for number in (1, 2):
        labelled(layer_of(resnet), number, "a red ball")
    measured(labelled(layer_of(resnet), 3, "grass"), active=0.7)
    by_label = as_owner.get(SHEET, {"colour": "label", "view": "map"}).content.decode()
    assert '<a href="1/" class="group-1"' in by_label
    assert '<a href="3/" class="group-2"' in by_label
    assert "a red ball <b>2</b>" in by_label
    assert tiles_of(as_owner, colour="label", state="group-1") == [1, 2]
    assert tiles_of(as_owner, colour="active", state="active-4") == [3]


def test_a_layer_without_exemplars_offers_to_make_them_all(
    as_owner: Client, teammate: User, resnet: VisionModelRow, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    assert "Make exemplars for all 2,048 units" in as_owner.get(SHEET).content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(2):
            as_owner.post(f"{SHEET}exemplars/", {"dataset": "photos"})
    job = Job.objects.get()
    assert job.options == {"model": RESNET, "layers": ["layer4"], "exemplars": True}
    assert len(waiting_in(redis_url, "long")) == 1
    assert "Making exemplars of layer4" in as_owner.get(SHEET).content.decode()
    assert as_owner.post(f"{SHEET}exemplars/", {"dataset": "nothing"}).status_code == 302
    assert Job.objects.count() == 1
    as_owner.force_login(teammate)
    assert as_owner.post(f"{SHEET}exemplars/", {"dataset": "photos"}).status_code == 403


def test_chosen_units_lead_to_their_runs(as_owner: Client, owner: User, resnet: VisionModelRow) -> None:
    old, new, failed = (asked(owner, n, status) for n, status in ((1, "concluded"), (1, "concluded"), (1, "failed")))
    other = asked(owner, 2, "limit_reached")
    chosen = f"{SHEET}chosen/"
    assert (
        as_owner.post(chosen, {"units": "1-2", "act": "compare"})["Location"]
        == f"/compare/?run={new.pk}&run={other.pk}"
    )
    queue = as_owner.post(chosen, {"unit": ["1", "2", "9"], "act": "review"})["Location"]
    assert queue == f"/review/new/?run={new.pk}%2C{other.pk}"
    assert as_owner.get(queue).status_code == 200
    for wrong in (
        {"units": "1", "act": "compare"},
        {"units": "9-12"},
        {},
        {"units": "x-y"},
        {"units": "0-999999999999"},
    ):
        response = as_owner.post(chosen, wrong)
        assert response.status_code == 302
    assert {old.pk, failed.pk}.isdisjoint({new.pk, other.pk})


def test_chosen_units_fill_in_a_sweep(as_owner: Client, resnet: VisionModelRow) -> None:
    VisionModelRow.objects.update(available=True)
    given = {"model": RESNET, "layer": "layer4", "choose": "list", "fill": "yes", "units": "3-5,9"}
    text = as_owner.post("/sweeps/new/", given).content.decode()
    assert "3\n4\n5\n9</textarea>" in text
    assert re.search(r'value="list"[^>]* checked', text)


def test_the_api_lists_the_units_of_a_layer_as_its_page_does(as_owner: Client, resnet: VisionModelRow) -> None:
    scored(resnet, 3, "fur", 0.8)
    address = f"/api/v1/layers/{layer_of(resnet).pk}/sheet"
    found = as_owner.get(address, {"low": "0.5"}).json()
    assert (found["count"], found["numbers"]) == (1, "3")
    assert found["items"][0] | {"name": ""} == found["items"][0]
    assert (found["items"][0]["label"], found["items"][0]["r"]) == ("fur", 0.8)
    assert as_owner.get(address, {"start": "2000", "limit": "200"}).json()["items"][-1]["number"] == 2047


def test_labels_beyond_chance_are_counted_with_all_of_the_layer_in_mind(
    as_owner: Client, resnet: VisionModelRow
) -> None:
    address = f"/api/v1/layers/{layer_of(resnet).pk}/sheet"
    assert "Beyond chance" not in as_owner.get(SHEET).content.decode()
    for number, (r, p) in enumerate(
        ((0.9, 0.001), (0.4, 0.02), (0.2, 0.045), (-0.3, 0.001), (0.1, 0.9), (0.5, None), (0.6, 7.0))
    ):
        scored(resnet, number, f"label {number}", r, p)
    told = as_owner.get(address, {"low": "0.8"}).json()
    assert (told["count"], told["tested"], told["beyond_chance"]) == (1, 5, 2)
    for view in ("", "map"):
        assert "Beyond chance, 2 of 5 tested labels" in as_owner.get(SHEET, {"view": view}).content.decode()


def test_labels_that_several_units_share_are_counted_and_lead_to_them(as_owner: Client, resnet: VisionModelRow) -> None:
    address = f"/api/v1/layers/{layer_of(resnet).pk}/sheet"
    assert "of their own" not in as_owner.get(SHEET).content.decode()
    for number, text in enumerate(("Fur", "fur.", "sky & sea", MARKUP, "FUR", "sky  & sea", "dogs")):
        labelled(layer_of(resnet), number, text)
    for view in ("", "map"):
        page = " ".join(as_owner.get(SHEET, {"view": view, "state": "labelled"}).content.decode().split())
        assert "2 of 7 labels say something of their own" in page
        assert MARKUP not in page
        link, named = re.search(r'<a href="(\?[^"]*)">(fur)</a> <span>\(3 units\)', page).groups()  # type: ignore[union-attr]
        assert named == "fur"
        assert "state" not in link
    assert tiles_of(as_owner, q="fur") == [0, 1, 4]
    told = as_owner.get(address, {"q": "dogs"}).json()
    assert (told["count"], told["labels"], told["unique_labels"]) == (1, 7, 2)
    assert told["repeated_labels"] == [{"label": "fur", "units": 3}, {"label": "sky & sea", "units": 2}]
    Label.objects.exclude(text__in=["dogs", "Fur"]).delete()
    assert "All 2 labels say something of their own" in as_owner.get(SHEET).content.decode()


def test_a_sheet_tells_nothing_of_a_run_that_its_reader_is_to_judge_unseen(run: Run, first: User) -> None:
    layer = catalogue()
    Label.objects.filter(run=run).delete()
    label = Label.objects.create(text="red balls", source="run", run=run)
    label.units.add(Unit.objects.create(layer=layer, number=NUMBER))
    page = reverse("units-layer", args=[MODEL, LAYER])
    assert "red balls" in signed_in(first).get(page).content.decode()
    queued(run, first)
    assert "red balls" not in signed_in(first).get(page).content.decode()
    assert "red balls" not in signed_in(first).get(page, {"colour": "label"}).content.decode()


def test_tiles_and_colours_say_what_reviewers_made_of_a_unit(
    as_owner: Client, owner: User, teammate: User, resnet: VisionModelRow
) -> None:
    old, new, split, waits = (asked(owner, number, "concluded") for number in (1, 1, 2, 3))
    for run, verdict in ((old, "reject"), (new, "accept"), (split, "split")):
        Run.objects.filter(pk=run.pk).update(verdict=verdict)
    queue = queued(waits, owner, teammate)
    assert tiles_of(as_owner, colour="review", state="review-accept") == [1]
    assert tiles_of(as_owner, colour="review", state="review-split") == [2]
    assert tiles_of(as_owner, colour="review", state="review-waiting") == [3]
    text = as_owner.get(SHEET).content.decode()
    tile = text[text.index('value="1"') : text.index('value="2"')]
    assert 'class="tile-review review-accept" title="Accepted"' in tile
    layer = layer_of(resnet)
    items = as_owner.get(f"/api/v1/layers/{layer.pk}/sheet", {"colour": "review", "limit": 4}).json()["items"]
    assert [each["review"] for each in items] == ["", "Accepted", "Disputed", "In review"]
    assert queue
