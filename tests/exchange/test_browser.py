"""In a real browser: the page of a bundle, whose hostile words run nothing and fetch nothing; several files brought."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from experiments.models import Member, Role
from tests.support.browser import assert_fits, needs_chromium, open_page
from tests.support.bundles import HOSTILE, bundled, full_run
from tests.support.figure_boxes import BOXES
from tests.support.people import member

pytestmark = [
    pytest.mark.usefixtures("redis_url"),
    needs_chromium,
]
DECODED = "each => each.decode().then(() => each.naturalWidth)"
"""How wide a picture is once it is there: those that are hidden wait until they are looked at."""


def test_a_hostile_run_opens_as_words_and_pictures(owner: User, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    with zipfile.ZipFile(bundled(full_run(owner, HOSTILE), path=tmp_path / "run.zip")) as packed:
        file.write_bytes(packed.read("run.html"))
    asked: list[str] = []
    with open_page() as page:
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: asked.append(message.text))
        page.on("dialog", lambda dialog: asked.append(dialog.message))
        page.goto(file.as_uri(), wait_until="load")
        expect(page.get_by_role("heading", level=1)).to_have_text(f"What? {HOSTILE}")
        expect(page.get_by_role("heading", name="Conclusion")).to_be_visible()
        assert page.title().startswith("What? </title></style>")
        for look in ("Heat map", "Raw", "Masked"):
            page.get_by_text(look, exact=True).click()
            for picture in page.locator("figure img:visible").all():
                picture.scroll_into_view_if_needed()
                assert picture.evaluate(DECODED) > 0
        assert page.locator("script, link, iframe, [onerror], [style]").count() == 0
    assert [each for each in asked if not each.startswith("data:image/webp")] == [file.as_uri()]


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
    with open_page(viewport={"width": width, "height": 900}) as page:
        page.goto(file.as_uri(), wait_until="load")
        cards = page.evaluate(BOXES)
    assert cards
    assert [each for each in cards if each["beyond"] or each["lines"] > 1.5] == []


def test_several_files_are_chosen_and_each_stands_in_the_list(
    live_server: Any, owner: User, client: Client, tmp_path: Path
) -> None:
    Member.objects.filter(user=owner).update(role=Role.ADMIN)
    member("researcher", "RESEARCHER")
    client.force_login(owner)
    paths = [tmp_path / f"layer4_{unit}.json" for unit in (3, 5)]
    for path in paths:
        path.write_text("[]")
    address = live_server.url
    with open_page(address, client) as page:
        page.goto(f"{address}/imports/", wait_until="load")
        form = page.locator("form", has=page.get_by_role("button", name="Import transcripts"))
        form.get_by_label("Transcripts").set_input_files(paths)
        form.get_by_label("Model").fill("hf:own/net")
        form.get_by_label("Owner of the runs").select_option("researcher")
        form.get_by_role("button", name="Import transcripts").click()
        for path in paths:
            expect(page.locator("#import-list li", has_text=path.name)).to_have_count(1)
        assert_fits(page, 390)


@pytest.mark.parametrize("width", [1440, 390])
def test_formats_follow_what_is_exported(live_server: Any, owner: User, client: Client, width: int) -> None:
    full_run(owner)
    client.force_login(owner)
    address = live_server.url
    with open_page(address, client, viewport={"width": width, "height": 900}) as page:
        page.goto(f"{address}/exports/", wait_until="load")
        formats = page.get_by_label("Format")
        expect(formats.locator("option[value=cosy]")).to_have_count(0)
        page.get_by_role("radio", name="Labels", exact=True).check()
        expect(formats.locator("option[value=cosy]")).to_have_count(1)
        page.goto(f"{address}/exports/?what=runs&format=dataset-runs", wait_until="load")
        expect(page.get_by_text("an import restores the runs")).to_be_visible()
        assert_fits(page, width)
