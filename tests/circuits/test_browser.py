"""Ticking units in a browser: from search results and from a sheet to a circuit."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from experiments.models import VisionModelRow
from tests.support.browser import needs_chromium, new_page, open_browser
from tests.support.people import signed_in
from tests.support.served import served
from tests.support.unit_pages import RESNET, labelled, layer_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),  # WhiteNoise reads its files at once
    needs_chromium,
]


def test_ticked_units_become_a_circuit(redis_url: str, owner: User, resnet: VisionModelRow) -> None:
    for number in (7, 9):
        labelled(layer_of(resnet), number, "red balls")
    sheet = reverse("units-layer", args=[RESNET, "layer4"])
    client, errors = signed_in(owner), list[str]()
    with open_browser() as browser, served() as url:
        page = new_page(browser, url, client, errors)
        page.goto(f"{url}/search/units/?q=red")
        search_results_are_ticked(page)
        page.goto(f"{url}{sheet}")
        units_of_the_sheet_are_added(page)
        browser.close()
    assert errors == []


def search_results_are_ticked(page: Page) -> None:
    for number in (7, 9):
        page.get_by_label(f"Choose {RESNET} / layer4 / {number}").check()
    page.get_by_role("button", name="Add to circuit").click()
    page.get_by_label("New circuit").fill("reds")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("reds")
    expect(page.locator(".circuit-member")).to_have_count(2)


def units_of_the_sheet_are_added(page: Page) -> None:
    for number in (7, 11):
        page.get_by_label(f"Choose unit {number}", exact=True).check()
    page.get_by_role("button", name="Add to circuit").click()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Added 1 to “reds”. 1 is in it already.")).to_be_visible()
    expect(page.locator(".circuit-member")).to_have_count(3)
