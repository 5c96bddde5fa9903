"""Images in a real browser: the switch for the whole site, the mask for any threshold, an edit over its original."""

from __future__ import annotations

import numpy as np
import pytest
from django.test import Client
from numpy.typing import NDArray
from PIL import Image as Pillow
from playwright.sync_api import Page, expect

from experiments.core import transcript
from experiments.models import Run
from tests.support.browser import needs_chromium, open_page
from tests.support.builders import experiment, make_run
from tests.support.pictures import logged
from workers.jobs.images import ImagesInDatabase
from workers.lab.imaging import draw_map, mask_image
from workers.lab.memory import keep_map
from workers.protocols import Provenance
from workers.record.experiments import Observation
from workers.record.origins import Origin

pytestmark = [pytest.mark.django_db(transaction=True), needs_chromium]

SIDE, THRESHOLD = 32, 4.0
MAP = np.array([[10.0, 6.0, 0.0], [5.0, 2.0, 0.0], [0.0, 0.0, 0.0]], np.float32)


def picture(seed: int) -> Pillow.Image:
    return Pillow.fromarray(np.random.default_rng(seed).integers(0, 256, (SIDE, SIDE, 3), np.uint8))


def seen(title: str, seed: int, activation_map: NDArray[np.float32], original: str | None = None) -> Observation:
    """An image, measured as the laboratory does."""
    images, image = ImagesInDatabase(), picture(seed)
    raw = images.remember(image, Provenance(Origin.GENERATED, title, original=original))
    masked = images.remember(mask_image(image, activation_map, THRESHOLD), Provenance(Origin.GENERATED, raw=raw))
    kept = keep_map(images, draw_map(activation_map, THRESHOLD, image.size))
    images.flush()
    origin = Origin.EDITED if original else Origin.GENERATED
    return Observation(title, float(activation_map.max()), raw, masked, origin, title, 0, original, map=kept)


@pytest.fixture
def run(owner) -> Run:
    run = make_run(owner)
    before = seen("a red ball", 1, MAP)
    after = seen("make it green", 2, MAP / 2, before.image)
    transcript.append(run.pk, "experiment", experiment())
    transcript.append(run.pk, "result", logged(before, after, seen("a tree", 3, MAP / 5)))
    return run


def test_the_switch_is_remembered_and_the_light_box_follows_it(
    live_server, client: Client, run: Run, owner, redis_url: str
) -> None:
    client.force_login(owner)
    errors: list[str] = []
    with open_page(live_server.url, client, errors) as page:
        page.goto(f"{live_server.url}/runs/{run.pk}/experiments/1/")
        first = page.locator(".image-card").first
        expect(first.locator(".masked")).to_be_visible()
        expect(first.locator(".raw")).to_be_hidden()
        page.keyboard.press("i")
        expect(first.locator(".heat")).to_be_visible()
        expect(first.locator(".masked")).to_be_hidden()
        page.keyboard.press("i")
        page.reload()
        expect(first.locator(".raw")).to_be_visible()
        expect(page.locator("main .page-head .image-switch button[aria-pressed=true]")).to_have_text("Raw")
        first.locator(".frame").click()
        page.locator("#lightbox .image-switch").get_by_text("Heat map").click()
        expect(page.locator("#lightbox-plate .heat")).to_be_visible()
        expect(page.locator("#lightbox-key")).to_contain_text("10.00")
        page.keyboard.press("Escape")
        expect(page.locator(".image-card .heat").last).to_be_visible()
        expect(first.locator(".frame")).to_be_focused()
        pictures = page.locator(".image-card img")
        assert pictures.count() == page.locator(".image-card img[width][height]").count(), "pages do not shift"
    assert [each for each in errors if "WebSocket" not in each] == []


def test_the_mask_for_a_threshold_is_that_of_the_laboratory(
    live_server, client: Client, run: Run, owner, redis_url: str
) -> None:
    client.force_login(owner)
    with open_page(live_server.url, client) as page:
        page.goto(f"{live_server.url}/runs/{run.pk}/experiments/1/")
        page.locator(".image-card .frame").first.click()
        slider = page.locator("#lightbox-threshold")
        expect(slider).to_have_value(str(round(1000 * THRESHOLD / 10)))
        expect(page.locator("#lightbox-value")).to_have_text("4.00")
        for value in (3.0, 7.0):
            slider.fill(str(round(100 * value)))
            expect(page.locator("#lightbox-value")).to_have_text(f"{value:.2f}")
            expected = np.asarray(mask_image(picture(1), MAP, value), int)
            differing = np.abs(_read_canvas(page) - expected).max(axis=2) > 2  # the map has 256 shades
            assert differing.mean() < 0.02
        page.locator("#lightbox-reset").click()
        expect(page.locator("#lightbox-mask")).to_be_hidden()
        slider.press("ArrowRight")
        expect(page.locator("#lightbox-value")).to_have_text("4.01")
        expect(page.locator("#lightbox-place")).to_have_text("Image 1 of 3")


def _read_canvas(page: Page) -> NDArray[np.int_]:
    """(height, width, 3)."""
    canvas = page.locator("#lightbox-mask")
    expect(canvas).to_be_visible()
    data = canvas.evaluate("(c) => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]")
    return np.array(data).reshape(SIDE, SIDE, 4)[..., :3]


def test_an_edit_lies_over_its_original_and_arrow_keys_reach_all_of_the_group(
    live_server, client: Client, run: Run, owner, redis_url: str
) -> None:
    client.force_login(owner)
    with open_page(live_server.url, client) as page:
        page.goto(f"{live_server.url}/runs/{run.pk}/experiments/1/")
        expect(page.locator(".edits .image-card")).to_have_count(2)
        page.locator(".image-card .frame").first.click()
        expect(page.locator("#lightbox-strip button")).to_have_count(3)
        expect(page.locator("#lightbox-split")).to_be_hidden()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#lightbox-title")).to_have_text("make it green")
        expect(page.locator("#lightbox-change")).to_contain_text("5.0")
        split = page.locator("#lightbox-split input")
        page.keyboard.press("b")
        expect(split).to_have_value("100")
        page.keyboard.press("b")
        expect(split).to_have_value("0")
        split.fill("30")
        covered = page.locator("#lightbox-original").evaluate("(each) => getComputedStyle(each).clipPath")
        assert "70%" in covered or "30%" in covered
        page.keyboard.press("ArrowLeft")  # on the slider it moves the slider
        expect(split).to_have_value("29")
        page.locator("#lightbox-strip button").last.click()
        expect(page.locator("#lightbox-title")).to_have_text("a tree")
        expect(page.locator("#lightbox-next")).to_be_disabled()
        page.keyboard.press("Home")
        expect(page.locator("#lightbox-title")).to_have_text("a red ball")
