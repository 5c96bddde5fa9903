"""Small versions of images: made on the worker, served like images, the whole image in their place until then."""

from __future__ import annotations

from dataclasses import astuple
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse
from PIL import Image as Pillow

from experiments.core.thumbnails import SIZES, ImageUrls
from experiments.models import Image
from tests.support.pictures import stored
from workers.jobs import recovery, thumbnails
from workers.jobs.images import ImagesInDatabase
from workers.protocols import Provenance

pytestmark = pytest.mark.django_db


def kept(image: Pillow.Image) -> str:
    images = ImagesInDatabase()
    key = images.remember(image, Provenance("generated"))
    images.png(key)
    images.flush()
    thumbnails.mark_made(wait=True)
    return key


def forget(key: str) -> None:
    """As an image that an older version stored."""
    for size in thumbnails.SIZES:
        default_storage.delete(Image.thumbnail_of(key, size))
    Image.objects.filter(key=key).update(has_thumbnails=False)


def served(client: Client, key: str, size: int) -> Pillow.Image:
    response = client.get(f"/images/{key}/thumb-{size}.webp")
    assert (response.status_code, response["Content-Type"]) == (200, "image/webp")
    assert response["Cache-Control"] == "private, max-age=31536000, immutable"
    return Pillow.open(BytesIO(response.content))


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_a_stored_image_has_small_versions_that_browsers_keep(as_owner: Client, mode: str) -> None:
    key = kept(Pillow.new(mode, (640, 400)))
    assert Image.objects.get().has_thumbnails
    assert served(as_owner, key, 160).size == (160, 100)
    assert served(as_owner, key, 320).size == (320, 200)
    again = as_owner.get(f"/images/{key}/thumb-160.webp", headers={"If-None-Match": f'"{key}-160"'})
    assert again.status_code == 304


def test_a_larger_one_stands_in_for_one_that_an_older_version_did_not_make(as_owner: Client) -> None:
    key = kept(Pillow.new("RGB", (640, 400)))
    default_storage.delete(Image.thumbnail_of(key, 64))
    response = as_owner.get(f"/images/{key}/thumb-64.webp")
    assert Pillow.open(BytesIO(response.content)).size == (160, 100)
    assert response["Cache-Control"] == "private, max-age=60"
    thumbnails.write(key, Pillow.new("RGB", (640, 400)))
    assert served(as_owner, key, 64).size == (64, 40)


def test_the_whole_image_stands_in_for_a_moment(as_owner: Client) -> None:
    key = stored("red")
    forget(key)
    response = as_owner.get(f"/images/{key}/thumb-160.webp")
    assert (response.status_code, response["Content-Type"]) == (200, "image/png")
    assert response["Cache-Control"] == "private, max-age=60"
    thumbnails.write_missing()
    assert served(as_owner, key, 160).size == (8, 8)
    assert Image.objects.get().has_thumbnails


def test_nobody_waits_for_small_versions(as_owner: Client) -> None:
    images = ImagesInDatabase()
    key = images.remember(Pillow.new("RGB", (640, 400), "teal"), Provenance("generated"))
    images.flush()
    assert not Image.objects.get().has_thumbnails  # a worker killed now leaves them to the sweep
    assert default_storage.exists(Image.path_of(key))
    thumbnails.mark_made(wait=True)
    assert Image.objects.get().has_thumbnails
    assert served(as_owner, key, 320).size == (320, 200)


def test_small_versions_that_a_full_disk_refuses_are_left_to_the_sweep(
    caplog: pytest.LogCaptureFixture, settings: Any, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = tmp_path
    (tmp_path / "thumbnails").write_text("a file where a folder should be")
    key = kept(Pillow.new("RGB", (9, 9), "olive"))
    assert not Image.objects.get().has_thumbnails
    assert key in caplog.text
    (tmp_path / "thumbnails").unlink()
    thumbnails.write_missing()
    assert Image.objects.get().has_thumbnails
    assert default_storage.exists(Image.thumbnail_of(key, 160))


@pytest.mark.usefixtures("redis_url")
@pytest.mark.django_db(transaction=True)
def test_the_recovery_job_asks_for_those_that_are_missing() -> None:
    from celery import current_app

    def waiting() -> int:
        with current_app.connection_for_read() as connection:
            return connection.default_channel.client.llen("long")

    key = stored("red")
    recovery.recover()
    assert waiting() == 0
    forget(key)
    recovery.recover()
    assert waiting() == 1


def test_a_broken_or_lost_file_is_passed_over_and_does_not_come_back(
    caplog: pytest.LogCaptureFixture, settings: Any, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = tmp_path  # what is broken here is broken for nobody else
    lost, broken, fine = stored("red"), stored("green"), stored("blue")
    for key in (lost, broken, fine):
        forget(key)
    default_storage.delete(Image.path_of(lost))
    with default_storage.open(Image.path_of(broken), "wb") as file:
        file.write(b"\x89PNG no more")
    thumbnails.write_missing()
    assert not Image.objects.filter(has_thumbnails=False).exists()
    assert default_storage.exists(Image.thumbnail_of(fine, 160))
    assert len(caplog.records) == 2


@pytest.mark.parametrize("path", ["thumb-161.webp", "thumb-0.webp", "thumb-160.webp"])
def test_other_sizes_and_unknown_images_are_not_found(as_owner: Client, path: str) -> None:
    key = "0" * 64 if path == "thumb-160.webp" else stored("red")
    assert as_owner.get(f"/images/{key}/{path}").status_code == 404


def test_the_addresses_of_an_image_are_those_of_the_site() -> None:
    key = "0" * 64
    known = [reverse("image-page", args=[key]), reverse("image", args=[key])]
    assert astuple(ImageUrls.of(key)) == (*known, *(reverse("thumbnail", args=[key, size]) for size in SIZES))
