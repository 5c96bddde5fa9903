"""Images are stored once, under their pixels, with the best that is known of them."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
from django.core.files.storage import default_storage
from PIL import Image as Pillow

from experiments.models import Image
from workers.jobs.images import ImagesInDatabase, io_pool, read_image
from workers.lab.imaging import decode_image, image_key
from workers.protocols import Provenance
from workers.record.origins import Origin

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
    assert read_image(key).tobytes() == RED.tobytes()
    assert ImagesInDatabase().recall(key) == Provenance("generated", "red", 3, scene)
    row = Image.objects.get()
    assert (row.width, row.height) == (12, 8)


def test_what_the_game_engine_drew_again_gets_its_parameters() -> None:
    plain = {"things": [], "ground": "snow"}
    viewed = plain | {"parameters": {"light": 1.0}}
    for scene, expected in ((plain, plain), (viewed, viewed), (plain, viewed)):
        key = remember(RED, Provenance(Origin.GENERATED, "red", 3, scene))
        assert Image.objects.get().scene == expected
        assert ImagesInDatabase().recall(key) == Provenance(Origin.GENERATED, "red", 3, expected)


def test_it_stores_the_same_pixels_once() -> None:
    first, second = remember(RED, Provenance("generated", "red")), remember(RED.copy(), Provenance("generated", "red"))
    assert first == second
    assert Image.objects.count() == 1
    assert [name for name in default_storage.listdir(first[:2])[1] if first[2:] in name] == [f"{first[2:]}.png"]


def test_what_a_row_names_is_not_written_again() -> None:
    key = remember(RED, Provenance("generated", "red"))
    before = Path(default_storage.path(Image.path_of(key))).stat()
    images = ImagesInDatabase()
    images.remember(RED, Provenance("generated", "red"))
    assert decode_image(images.png(key)).tobytes() == RED.tobytes()
    images.flush()
    after = Path(default_storage.path(Image.path_of(key))).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_two_workers_store_the_same_pixels() -> None:
    one, other = ImagesInDatabase(), ImagesInDatabase()
    for images in (one, other):
        images.expect([image_key(RED)])
        images.remember(RED, Provenance("generated", "red"))
    one.flush()
    other.flush()
    assert Image.objects.count() == 1
    assert read_image(image_key(RED)).tobytes() == RED.tobytes()


def test_only_external_gives_way_to_something_better_known() -> None:
    key = remember(RED, Provenance(Origin.EXTERNAL))
    remember(RED, Provenance("generated", "red", 1))
    remember(RED, Provenance(Origin.EXTERNAL))
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
    left = default_storage.listdir(key[:2])[1]
    assert not [name for name in left if name.startswith(".") or key[2:] in name]


def test_what_is_known_of_many_images_is_read_in_one_query(django_assert_num_queries) -> None:
    colours = ["red", "green", "blue"]
    keys = [remember(Pillow.new("RGB", (4, 4), colour), Provenance("generated", colour)) for colour in colours]
    images = ImagesInDatabase()
    with django_assert_num_queries(1):
        images.expect([*keys, "0" * 64])
        assert [images.recall(key).prompt for key in keys] == colours  # type: ignore[union-attr]
        assert images.recall("0" * 64) is None
        images.expect(keys)
        images.remember(Pillow.new("RGB", (4, 4), "red"), Provenance("generated", "another"), keys[0])
    assert images.recall(keys[0]).prompt == "red"  # type: ignore[union-attr]


def test_the_file_is_at_hand_before_and_after_it_is_written() -> None:
    images = ImagesInDatabase()
    key = images.remember(RED, Provenance("generated"))
    before = images.png(key)
    images.flush()
    assert ImagesInDatabase().png(key) == before
    # The deflate is free to write the same pixels otherwise.
    assert decode_image(images.png(key)).tobytes() == decode_image(before).tobytes() == RED.tobytes()
    with pytest.raises(KeyError):
        images.png("0" * 64)


def test_an_image_that_waits_for_its_turn_is_encoded_by_who_asks() -> None:
    go_on = Event()
    for _ in range(io_pool._max_workers):
        io_pool.submit(go_on.wait, 10)
    try:
        images = ImagesInDatabase()
        key = images.remember(RED, Provenance("generated"))
        assert decode_image(images.png(key)).tobytes() == RED.tobytes()
    finally:
        go_on.set()
    images.flush()
    assert read_image(key).tobytes() == RED.tobytes()
