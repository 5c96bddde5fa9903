"""Images are served by key, privately, and asked for once."""

from __future__ import annotations

import pytest
from django.test import Client
from PIL import Image as Pillow

from experiments.core.thumbnails import picture_of
from tests.support.pictures import stored

pytestmark = pytest.mark.django_db


def test_an_image_comes_as_png_that_a_browser_keeps_to_itself(as_owner: Client) -> None:
    response = as_owner.get(f"/images/{stored('red')}.png")
    assert response.status_code == 200
    assert response["Content-Type"] == "image/png"
    assert response["Cache-Control"] == "private, max-age=31536000, immutable"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response.content.startswith(b"\x89PNG")


def test_an_image_the_browser_has_is_not_sent_again(as_owner: Client) -> None:
    key = stored("red")
    response = as_owner.get(f"/images/{key}.png", headers={"If-None-Match": f'"{key}"'})
    assert response.status_code == 304
    assert response.content == b""


@pytest.mark.parametrize("name", ["0" * 64, "0" * 63, "../settings", "A" * 64, "%2e%2e%2fsecret_key"])
def test_nothing_else_is_served(as_owner: Client, name: str) -> None:
    assert as_owner.get(f"/images/{name}.png").status_code == 404


def test_the_pixels_are_those_that_were_stored(as_owner: Client) -> None:
    from io import BytesIO

    data = as_owner.get(f"/images/{stored('blue')}.png").content
    assert Pillow.open(BytesIO(data)).getpixel((0, 0)) == (0, 0, 255)


def test_the_beginning_of_a_key_leads_to_the_small_version_of_its_image(as_owner: Client) -> None:
    keys = sorted(stored(colour) for colour in ("red", "green", "blue"))
    for key in keys:
        answer = as_owner.get(picture_of(key))
        assert (answer.status_code, answer["Location"]) == (302, f"/images/{key}/thumb-160.webp")
        assert "immutable" in answer["Cache-Control"]
    for other in ("0" * 16, "f" * 16, keys[0][:15], keys[0][:17], "%5f" * 16, "x"):
        assert as_owner.get(f"/images/{other}.webp").status_code == 404, other
