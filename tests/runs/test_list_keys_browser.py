"""A list by keyboard alone: rows, ticks, opening, a view kept, an export; and columns that somebody chose."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from experiments.models import Export, SavedView
from tests.support.browser import aside, needs_chromium, open_page, overhang
from tests.support.builders import make_run
from tests.support.keyboard import Keyboard

pytestmark = [pytest.mark.django_db(transaction=True), needs_chromium]
NARROW = {"width": 1280, "height": 800}


def test_rows_are_walked_ticked_and_opened_and_the_list_exported(live_server, owner: User, as_owner: Client) -> None:
    first, second, third = (make_run(owner, unit=unit, status="concluded") for unit in range(3))
    with open_page(live_server.url, as_owner, viewport=NARROW) as page:
        keys = Keyboard(page)
        page.goto(f"{live_server.url}/runs/?status=concluded")
        keys.press("j")
        expect(page.locator(f"#run-{third.pk}")).to_be_focused()
        keys.press("j", "x", "j", "x", "k")
        expect(page.locator(f"#run-{second.pk}")).to_be_focused()
        ticked = page.locator("[data-row] input:checked")
        assert [each.get_attribute("value") for each in ticked.all()] == [str(second.pk), str(first.pk)]
        keys.press("x")
        expect(ticked).to_have_count(1)
        keys.reach(page.get_by_text("Save this view"), "Shift+Tab")
        keys.press("Enter")
        name = page.locator(".save-view input[name=name]")
        keys.reach(name)
        keys.press("Control+a")
        keys.type("Done")
        keys.press("Enter")
        expect(page.locator(".saved [aria-current=page]")).to_have_text("Done")
        keys.reach(page.locator(".export-list button"))
        keys.press("Enter")
        page.wait_for_url("**/exports/")
        expect(page.locator("#export-list li").first).to_contain_text("Concluded runs")
        page.go_back()
        keys.press("j", "Enter")
        page.wait_for_url(f"**/runs/{third.pk}/")
    assert aside(lambda: (SavedView.objects.get().query, Export.objects.get().query)) == ("status=concluded",) * 2


def test_columns_that_somebody_chose_stand_on_any_screen(live_server, owner: User, as_owner: Client) -> None:
    make_run(owner, status="concluded")
    with open_page(live_server.url, as_owner, viewport=NARROW) as page:
        for width in (NARROW["width"], 390):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(f"{live_server.url}/runs/")
            expect(page.locator("td.secondary").first).to_be_hidden()
            page.goto(f"{live_server.url}/runs/?col=backbone&col=owner&col=asked&col=tokens&col=time&col=unit")
            expect(page.locator("td.secondary")).to_have_count(3)
            assert all(each.is_visible() for each in page.locator("td.secondary, td.unit-cell, td.number").all())
            assert overhang(page) == 0, "what is wide scrolls in its own box"
