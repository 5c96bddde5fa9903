"""The page of a bundle, opened in a real browser: hostile words run nothing and fetch nothing."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect, sync_playwright

from tests.test_browser import CHROMIUM, FLAGS
from tests.test_transfer import HOSTILE, bundled, full_run

pytestmark = [
    pytest.mark.usefixtures("redis_url"),
    pytest.mark.skipif(CHROMIUM is None, reason="No Chromium found: `apt-get install chromium` brings it."),
]


def test_a_hostile_run_opens_as_words_and_pictures(owner: User, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    with zipfile.ZipFile(bundled(full_run(owner, HOSTILE), path=tmp_path / "run.zip")) as packed:
        file.write_bytes(packed.read("run.html"))
    asked: list[str] = []
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS).new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: asked.append(message.text))
        page.on("dialog", lambda dialog: asked.append(dialog.message))
        page.goto(file.as_uri(), wait_until="load")
        expect(page.get_by_role("heading", level=1)).to_have_text(f"What? {HOSTILE}")
        expect(page.get_by_role("heading", name="Concluded")).to_be_visible()
        assert page.title().startswith("What? </title></style>")
        for picture in page.locator("figure img").all():
            assert picture.evaluate("each => each.naturalWidth") > 0
        assert page.locator("script, link, iframe, [onerror], [style]").count() == 0
    assert [each for each in asked if not each.startswith("data:image/jpeg")] == [file.as_uri()]


BOXES = """
() => [...document.querySelectorAll("figure")].map((figure) => {
  const own = figure.getBoundingClientRect();
  const inside = [...figure.querySelectorAll(".activation, .bar, .title")].map((each) => each.getBoundingClientRect());
  const number = figure.querySelector(".activation");
  return {
    beyond: inside.some((each) => each.left < own.left - 1 || each.right > own.right + 1),
    lines: number.getBoundingClientRect().height / parseFloat(getComputedStyle(number).lineHeight),
    words: number.textContent.trim(),
  };
})
"""


@pytest.mark.parametrize("width", [1440, 390])
def test_activations_of_two_figures_stay_inside_their_cards(owner: User, tmp_path: Path, width: int) -> None:
    run = full_run(owner)
    event = run.events.get(kind="result")
    (entry,) = event.payload["entries"]
    entry["observations"] = [each | {"activation": 23.13} for each in entry["observations"] * 4]
    event.save()
    run.observations.update(activation=23.13)
    file = tmp_path / "run.html"
    with zipfile.ZipFile(bundled(run, path=tmp_path / "run.zip")) as packed:
        file.write_bytes(packed.read("run.html"))
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS).new_page(
            viewport={"width": width, "height": 900}
        )
        page.goto(file.as_uri(), wait_until="load")
        cards = page.evaluate(BOXES)
    assert cards
    assert [each for each in cards if each["beyond"] or each["lines"] > 1.5] == []
