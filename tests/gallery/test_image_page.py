"""The page of an image: what is known of it, and every place it was used in."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Dataset, Exemplar, Image, Layer, Unit, UnitProfile, VisionModelRow
from tests.support.gallery import edit, run_with, titles
from tests.support.pictures import seen, stored

pytestmark = pytest.mark.django_db


def page(client: Client, key: str, query: str = "") -> str:
    response = client.get(f"/images/{key}/{query}")
    assert response.status_code == 200
    return response.content.decode()


def test_it_says_what_is_known_and_leads_to_what_it_came_from_and_what_was_made_of_it(
    as_owner: Client, owner: User
) -> None:
    original = stored("red", prompt="<b>a red ball</b>", seed=7, scene={"ground": "snow"})
    edited, masked = stored("blue", original=original), stored("darkred", raw=original)
    text = page(as_owner, original)
    assert "&lt;b&gt;a red ball" in text
    assert "snow" in text
    assert f'href="/images/{edited}/"' in text
    assert f'href="/images/{masked}/"' in text
    assert "No experiment has logged it" in text
    assert f'href="/images/{original}/"' in page(as_owner, edited)
    assert f'href="/images/{original}/"' in page(as_owner, masked)


def test_it_names_every_place_it_was_used_in(as_owner: Client, owner: User) -> None:
    red = seen("a red ball", 30.0, "red")
    run_with(owner, red, edit("make it blue", 1.0, "blue", red))
    run_with(owner, red)
    text = page(as_owner, red.image)
    assert titles(text) == ["a red ball", "a red ball"]
    assert titles(page(as_owner, red.masked or "")) == ["a red ball", "a red ball"]
    assert "There is no such page" in page(as_owner, red.image, "?page=9")
    assert "There is no such page" in page(as_owner, red.image, "?page=-1")


def test_an_exemplar_names_its_units_and_queries_stay_few(
    as_owner: Client, owner: User, django_assert_max_num_queries: Any
) -> None:
    red = seen("a red ball", 30.0, "red")
    layer = Layer.objects.create(
        model=VisionModelRow.objects.create(name="toybox"), position=0, name="layer4", path="x", kind="conv", units=64
    )
    dataset = Dataset.objects.create(key="toybox")
    for number in range(15):
        profile = UnitProfile.objects.create(unit=Unit.objects.create(layer=layer, number=number), dataset=dataset)
        Exemplar.objects.create(profile=profile, rank=1, activation=number, image_id=red.image, masked_id=red.masked)
        run_with(owner, red)
    with django_assert_max_num_queries(20):
        text = page(as_owner, red.image)
    assert "Exemplar of 15 units" in text
    assert "toybox / layer4 / unit 14" in text
    assert text.count('class="gallery-item') == 15


def test_an_unknown_key_is_not_found(as_owner: Client) -> None:
    assert as_owner.get(f"/images/{'0' * 64}/").status_code == 404
    assert Image.objects.count() == 0
