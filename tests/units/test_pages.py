"""Units: addresses, the network drawn, a layer, and the page of one unit."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from experiments.core.system_names import SystemNameMasker
from experiments.display.evidence import content, matches_words
from experiments.models import (
    Dataset,
    Exemplar,
    Label,
    LabelCheck,
    Layer,
    LayerIndex,
    Unit,
    UnitProfile,
    VisionModelRow,
)
from experiments.units.addresses import decode_name, encode_name
from experiments.units.drawing import distribution
from experiments.units.pages import LABELS, RUNS
from experiments.units.states import UnitState, count_states, states
from tests.support.queued import waiting_in
from tests.support.unit_pages import MARKUP, RESNET, asked, concluded, labelled, layer_of, measured

pytestmark = pytest.mark.django_db


def page_of(client: Client, number: int = 7, layer: str = "layer4", **query: str) -> str:
    response = client.get(reverse("unit", args=[RESNET, layer, number]), query)
    assert response.status_code == 200
    return response.content.decode()


# --- addresses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [RESNET, "toybox", "hf:/data/my models/x~2F", "..", ".", "été/%2F?#&", "模型"])
def test_every_name_has_one_address(name: str) -> None:
    part = encode_name(name)
    assert re.fullmatch(r"[\w.:~-]+", part, re.ASCII)
    assert part not in {".", ".."}
    assert decode_name(part) == name


@pytest.mark.parametrize("part", ["a~2fb", "~41", "a%2Fb", "a b", "~", "~C3", "~00", "", "é"])
def test_no_name_has_two(part: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds; an address with it is not found
        decode_name(part)


def test_the_address_of_a_unit_is_stable(as_owner: Client, resnet: VisionModelRow) -> None:
    assert reverse("unit", args=[RESNET, "layer4", 122]) == "/units/hf:microsoft~2Fresnet-152/layer4/122/"
    for wrong in ("hf:microsoft/resnet-152/layer4/122", "hf:microsoft~2Fresnet-152/layer4/0122", "toybox/layer4/1"):
        assert as_owner.get(f"/units/{wrong}/").status_code == 404
    assert as_owner.get("/units/hf:microsoft~2Fresnet-152/layer4/2048/").status_code == 404
    assert as_owner.get("/units/hf:microsoft~2Fresnet-152/nothing/").status_code == 404
    with pytest.raises(NoReverseMatch):
        reverse("unit", args=["", "layer4", 1])


# --- the network ----------------------------------------------------------------------------------------


def test_a_unit_has_the_first_state_that_is_true_of_it(owner: User, resnet: VisionModelRow) -> None:
    layer = layer_of(resnet)
    for status in ("failed", "concluded", "queued"):
        asked(owner, 1, status)
    asked(owner, 2, "concluded")
    asked(owner, 3, "waiting")
    labelled(layer, 3, "fur")
    asked(owner, 4, "cancelled")
    photos, other = Dataset.objects.get(), Dataset.objects.create(key="toybox")
    LayerIndex.objects.create(layer=layer, dataset=photos, dead=[4, 5, 6])
    LayerIndex.objects.create(layer=layer, dataset=other, dead=[5])
    known = states(resnet, [layer], SystemNameMasker(owner))
    assert known[layer.pk] == {1: "live", 2: "concluded", 3: "labelled", 4: "open", 5: "dead"}
    assert count_states([layer], known, UnitState.NEW) == {**dict.fromkeys(UnitState, 1), UnitState.NEW: 2043}


def test_a_large_network_is_drawn_in_little(as_owner: Client, owner: User, resnet: VisionModelRow) -> None:
    layer = layer_of(resnet)
    Unit.objects.bulk_create(Unit(layer=layer, number=n) for n in range(0, 2048, 3))
    label = Label.objects.create(text="something long that many units are called", source="import")
    label.units.set(layer.unit_set.all())
    response = as_owner.get(reverse("units-model", args=[RESNET]))
    assert len(response.content) < 200_000
    text = response.content.decode()
    assert 'href="/units/hf:microsoft~2Fresnet-152/layer4/"' in text
    assert 'href="/units/hf:microsoft~2Fresnet-152/layer4/3/"' in text
    assert "something long that many units are called · unit 3, labelled" in text
    assert len(as_owner.get(reverse("units-layer", args=[RESNET, "layer4"])).content) < 200_000


def test_units_are_found_by_number_name_and_label_and_filtered_by_state(
    as_owner: Client, resnet: VisionModelRow
) -> None:
    labelled(layer_of(resnet), 30, "A Dog's snout", "fur")
    labelled(layer_of(resnet, "layer1"), 31, f"dog {MARKUP}")
    address = reverse("units-model", args=[RESNET])

    def found(**query: str) -> str:
        return as_owner.get(address, query).content.decode()

    assert "2 units with “dog”" in found(q="dog")
    assert MARKUP not in found(q=MARKUP)
    assert "1 unit with “snout dog”" in found(q="snout dog")
    assert "0 units with “dog fur”" in found(q="dog fur")
    assert "No unit matches" in found(q="100% _ \\ ' \x00")
    assert "25 units with “30”" in found(q="30")  # five by number, twenty by the name of a class
    assert "1 unit with “class 999”" in found(q="class 999")
    assert 'class="new"' not in re.sub(r"<ul.*?</ul>", "", found(state="labelled"), flags=re.DOTALL)
    assert "There is no such state" in found(state="sleepy")
    assert "No unit has this number" in found(q="x" * 10_000)


def test_the_map_of_a_layer_lists_every_unit_as_a_link(as_owner: Client, resnet: VisionModelRow) -> None:
    labelled(layer_of(resnet), 5, MARKUP)
    text = as_owner.get(reverse("units-layer", args=[RESNET, "layer4"]), {"view": "map"}).content.decode()
    assert len(re.findall(r'<a href="\d+/" class=', text)) == 2048
    assert MARKUP not in text
    assert '<a href="5/" class="labelled" title="&lt;script&gt;' in text
    named = as_owner.get(reverse("units-layer", args=[RESNET, "logits"]), {"view": "map"}).content.decode()
    assert '<a href="999/" class="new">class 999</a>' in named


def test_a_random_unit_is_one_that_nobody_knows(as_owner: Client, resnet: VisionModelRow) -> None:
    layer = Layer.objects.create(model=resnet, position=9, name="small", path="small", kind="conv", units=3)
    labelled(layer, 0, "fur")
    LayerIndex.objects.create(layer=layer, dataset=Dataset.objects.get(), dead=[2])
    address = reverse("unit-random", args=[RESNET, "small"])
    assert as_owner.get(address)["Location"] == reverse("unit", args=[RESNET, "small", 1])
    labelled(layer, 1, "fur")
    assert as_owner.get(address)["Location"] == reverse("units-layer", args=[RESNET, "small"])


def test_the_number_of_queries_does_not_depend_on_how_much_there_is(
    as_owner: Client, owner: User, resnet: VisionModelRow, redis_url: str, django_assert_max_num_queries: Any
) -> None:
    addresses = [
        reverse("units"),
        reverse("units-model", args=[RESNET]),
        reverse("units-layer", args=[RESNET, "layer4"]),
    ]
    unit = labelled(layer_of(resnet), 7, "fur")
    profile = measured(unit, compared=timezone.now(), neighbours={"measure": "overlap", "images": 2})
    near = [[layer.pk, n, 0.5, 1] for layer in resnet.layers.all() for n in range(20, 23)]
    for size in (1, 8):
        for n in range(size):
            concluded(owner)
            labelled(layer_of(resnet), 20 + n, "near")
        UnitProfile.objects.filter(pk=profile.pk).update(
            neighbours={"measure": "overlap", "images": 2, "layers": 6, "same": near[:size], "others": near[:size]}
        )
        for address, most in zip(
            [*addresses, reverse("unit", args=[RESNET, "layer4", 7])], (13, 16, 27, 40), strict=True
        ):
            with django_assert_max_num_queries(most):
                assert as_owner.get(address).status_code == 200


# --- the page of a unit ----------------------------------------------------------------------------------


def test_a_unit_of_a_layer_that_is_not_indexed_waits_for_somebody_to_ask(
    as_owner: Client, teammate: User, resnet: VisionModelRow, redis_url: str
) -> None:
    assert "layer4 is not indexed over Photographs" in page_of(as_owner)
    assert not UnitProfile.objects.exists()
    assert waiting_in(redis_url, "long") == []
    address = reverse("unit-exemplars", args=[RESNET, "layer4", 7])
    assert as_owner.post(address, {"dataset": "nothing"}).status_code == 404
    assert as_owner.post(f"{address}?label=fur", {"dataset": "photos"})["Location"].endswith("/7/?label=fur")
    text = page_of(as_owner)
    assert 'hx-trigger="every 1500ms"' in text
    as_owner.force_login(teammate)
    assert "Find the exemplars" not in page_of(as_owner, 8)
    assert as_owner.post(address, {"dataset": "photos"}).status_code == 403


def test_a_unit_of_an_indexed_layer_asks_a_worker_by_itself_and_once(
    as_owner: Client, resnet: VisionModelRow, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    LayerIndex.objects.create(layer=layer_of(resnet), dataset=Dataset.objects.get())
    with django_capture_on_commit_callbacks(execute=True):
        page_of(as_owner)
        page_of(as_owner)
    assert waiting_in(redis_url, "long") == [f"({UnitProfile.objects.get().pk},)"]
    UnitProfile.objects.update(problem=f"No {MARKUP}. Run `make run`.")
    text = page_of(as_owner)
    assert "Retry" in text
    assert MARKUP not in text


def test_the_page_shows_exemplars_histogram_and_neighbours(
    as_owner: Client, resnet: VisionModelRow, redis_url: str
) -> None:
    profile = measured(labelled(layer_of(resnet), 7, "fur"))
    text = page_of(as_owner)
    assert "exemplar threshold 1.50" in text
    assert "exemplar threshold 1.50" in text
    assert "mask threshold 0.50" in text
    assert "900 images from 0.00 to 0.50" in text
    assert "No worker has been seen recently: the comparison comes as soon as one is there." in text
    layer1 = layer_of(resnet, "layer1")
    measured(labelled(layer1, 9, "stripes"), compared=timezone.now())
    told = {"measure": "correlation", "images": 500, "layers": 2, "same": [], "others": [[layer1.pk, 9, 0.8123, 4]]}
    UnitProfile.objects.filter(pk=profile.pk).update(compared=timezone.now(), neighbours=told)
    text = page_of(as_owner)
    assert "correlation of activations over 500 images, evenly taken from Photographs" in text
    assert reverse("unit", args=[RESNET, "layer1", 9]) in text
    assert "stripes" in text
    assert "0.81" in text
    raw, masked = Exemplar.objects.filter(profile=profile).values_list("image_id", "masked_id")[0]
    assert f'data-raw="/images/{raw}.png" data-masked="/images/{masked}.png"' in text


def test_a_class_says_what_its_activation_is(as_owner: Client, resnet: VisionModelRow, redis_url: str) -> None:
    resnet.layers.filter(name="logits").update(scale="sigmoid")
    measured(labelled(layer_of(resnet, "logits"), 7, "day"))
    text = page_of(as_owner, layer="logits")
    assert "the probability of a class by itself" in text
    assert "active on" not in text, "every class has some probability on every image"
    assert "by itself" in as_owner.get(reverse("units-model", args=[RESNET])).content.decode()
    assert "by itself" not in page_of(as_owner)


def test_a_dead_unit_says_so_and_an_unknown_dataset_too(
    as_owner: Client, resnet: VisionModelRow, redis_url: str
) -> None:
    profile = measured(labelled(layer_of(resnet), 7))
    profile.exemplars.all().delete()
    LayerIndex.objects.create(layer=layer_of(resnet), dataset=Dataset.objects.get(), dead=[7])
    UnitProfile.objects.update(histogram={}, compared=timezone.now(), neighbours={"problem": "gone"})
    text = page_of(as_owner)
    assert "No image of Photographs activates this unit at all" in text
    assert "Dead" in text
    assert "There is no such dataset here." in page_of(as_owner, dataset="nowhere")


def test_evidence_that_nobody_can_read_is_sorted_by_words_of_titles_and_claims_nothing(
    as_owner: Client, owner: User, resnet: VisionModelRow
) -> None:
    run = concluded(owner)
    text = page_of(as_owner)
    assert "red balls" in text
    assert "2 images with these words in title or prompt, mean <b>2.25</b>; 1 other, mean <b>3.00</b>" in text
    strongest, rest = text.split("Titles with these words, strongest")[1].split("Other titles, strongest")
    assert strongest.index("a red ball") < strongest.index("red balls far away")
    assert "a blue cube" in rest
    assert "Edits that lowered it most" in rest
    assert "\N{MINUS SIGN}3.8" in rest
    assert f"run {run.pk}, experiment 1" in text
    assert MARKUP not in text
    assert "neither for nor against" in text
    assert "where they are strong" not in text
    other = Label.objects.create(text="blue things", source="import", scores={"auc": 0.9})
    other.units.add(Unit.objects.get())
    check = LabelCheck.objects.create(
        key="k", unit=Unit.objects.get(), text=other.text, options={}, reading={"read_as": "cubes"}
    )
    Label.objects.filter(pk=other.pk).update(label_check=check)
    chosen = page_of(as_owner, label=str(other.pk))
    assert "no image has these words in title or prompt; 3 others" in chosen
    assert "auc 0.9" in chosen
    assert "Read as “cubes”." in chosen
    assert "import" in chosen


def test_of_many_runs_and_labels_the_newest_are_shown_and_the_others_are_a_click_away(
    as_owner: Client, owner: User, resnet: VisionModelRow, redis_url: str
) -> None:
    old = asked(owner, 7, "concluded")
    runs = [asked(owner, 7, "failed") for _ in range(RUNS + 1)]
    labelled(layer_of(resnet), 7, *(f"label {number}." for number in range(LABELS + 2)))
    address = reverse("unit", args=[RESNET, "layer4", 7])
    text = as_owner.get(address).content.decode()
    assert f'href="/runs/{runs[-1].pk}/"' in text
    assert f'href="/runs/{old.pk}/"' not in text
    assert '<span class="state-chip concluded"' in text, "of all runs, not of those shown"
    assert "label 2." in text
    assert "label 1." not in text
    links = [html.unescape(link) for link in re.findall(r'<p[^>]*>[^<]*<a href="([^"]+)">All ', text)]
    assert len(links) == 2
    every, all_runs = (as_owner.get(f"{address}{link}" if link[0] == "?" else link) for link in links)
    assert "label 0." in every.content.decode()
    assert f"1\N{EN DASH}{RUNS + 2} of {RUNS + 2}" in all_runs.content.decode()


def test_the_end_of_a_run_labels_a_unit_that_had_no_row_yet(owner: User, resnet: VisionModelRow) -> None:
    concluded(owner, 11)
    assert list(Unit.objects.get(number=11).labels.values_list("text", flat=True)) == ["red balls"]


def test_neighbouring_numbers_and_a_new_query_are_one_step_away(as_owner: Client, resnet: VisionModelRow) -> None:
    first, last = page_of(as_owner, 0), page_of(as_owner, 2047)
    assert 'rel="prev"' not in first
    assert 'rel="next"' in first
    assert 'rel="next"' not in last
    assert "/query/?model=hf%3Amicrosoft%2Fresnet-152&amp;layer=layer4&amp;unit=0&amp;dataset=photos" in first
    assert "class 5" in page_of(as_owner, 5, "logits")


@pytest.mark.parametrize(
    ("label", "title", "fits"),
    [
        ("red balls", "a large RED ball", True),
        ("red balls", "a blue ball", False),
        ("the snouts of dogs, any fur", "dog with a snout", True),
        ("car", "a red scarf", False),
        ("红色的球", "雪地上红色的球", True),
        ("images of", "anything", False),
    ],
)
def test_words_decide(label: str, title: str, fits: bool) -> None:
    words = content(label)
    assert bool(words and matches_words(title, words)) == fits


@pytest.mark.parametrize("histogram", [{}, {"counts": []}, {"start": 1.0, "width": 0.0, "counts": [5]}])
def test_a_histogram_that_nobody_knows_is_not_drawn(histogram: dict[str, Any]) -> None:
    assert distribution(histogram, None, None) is None


def test_a_histogram_holds_its_marks() -> None:
    drawn = distribution({"start": -1.0, "width": 0.5, "counts": [1, 0, 1000]}, 7.5, -3.0)
    assert drawn
    shape = drawn.shape
    assert all(shape.left <= line.x1 == line.x2 <= shape.edge for line in drawn.lines)
    low, high = drawn.bars
    assert low.height < high.height <= shape.floor - shape.top
