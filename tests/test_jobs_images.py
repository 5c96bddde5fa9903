"""Images are stored once, under their pixels, with the best that is known of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from PIL import Image as Pillow

from experiments.models import Image
from workers.jobs.images import ImagesInDatabase, read
from workers.lab.imaging import image_key
from workers.protocols import Provenance

RED = Pillow.new("RGB", (12, 8), "red")
pytestmark = pytest.mark.django_db


def remember(image: Pillow.Image, provenance: Provenance) -> str:
    images = ImagesInDatabase()
    key = images.remember(image, provenance)
    images.flush()
    return key


def test_it_gives_back_the_same_pixels_and_what_is_known_of_them() -> None:
    scene = {"things": [], "ground": "snow"}
    key = remember(RED, Provenance("generated", "red", 3, scene))
    assert key == image_key(RED)
    assert read(key).tobytes() == RED.tobytes()
    assert ImagesInDatabase().recall(key) == Provenance("generated", "red", 3, scene)
    row = Image.objects.get()
    assert (row.width, row.height) == (12, 8)


def test_it_stores_the_same_pixels_once() -> None:
    first, second = remember(RED, Provenance("generated", "red")), remember(RED.copy(), Provenance("generated", "red"))
    assert first == second
    assert default_storage.listdir(first[:2])[1] == [f"{first[2:]}.png"]


def test_only_uploaded_gives_way_to_something_better_known() -> None:
    key = remember(RED, Provenance("uploaded"))
    remember(RED, Provenance("generated", "red", 1))
    remember(RED, Provenance("uploaded"))
    remember(RED, Provenance("edited", "blue", 2))
    assert ImagesInDatabase().recall(key) == Provenance("generated", "red", 1)


def test_it_knows_nothing_of_what_was_never_stored() -> None:
    assert ImagesInDatabase().recall("0" * 64) is None
    with pytest.raises(KeyError):
        ImagesInDatabase().load("0" * 64)


def test_a_write_that_fails_leaves_no_half_file(tmp_path, settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    images = ImagesInDatabase()
    key = images.remember(Pillow.new("RGB", (5, 5), "green"), Provenance("generated"))
    with pytest.raises(OSError, match="No space left"):
        images.flush()
    assert not Image.objects.exists()
    assert default_storage.listdir(key[:2])[1] == []
