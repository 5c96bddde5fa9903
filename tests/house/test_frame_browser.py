"""The frame in a real browser: keys, the palette, the theme, and what it says while nothing answers."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from experiments.models import Run
from tests.support.browser import aside, needs_chromium, open_page
from tests.support.builders import make_run

EXPECTED = re.compile("ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_REFUSED|404|htmx:")

pytestmark = [
    pytest.mark.django_db(transaction=True),
    needs_chromium,
]


def test_the_frame_leads_anywhere_and_says_how_its_link_is(live_server, client: Client, owner: User) -> None:
    client.force_login(owner)
    run = make_run(owner, question="What then?")
    errors: list[str] = []
    with open_page(live_server.url, client, errors) as page:
        page.goto(f"{live_server.url}/")
        overview_grows(page, run)
        keys_lead_to_places(page, live_server.url)
        the_palette_leads_to_pages(page, live_server.url)
        the_palette_acts(page, live_server.url)
        the_theme_stays(page)
        the_link_is_told(page)
        the_palette_signs_out(page, live_server.url)
    assert [error for error in errors if not EXPECTED.search(error)] == []


def overview_grows(page: Page, run: Run) -> None:
    expect(page.locator("#count-runs")).to_have_text("1 live")
    aside(lambda: Run.objects.filter(pk=run.pk).update(status="waiting", reason="No key."))
    expect(page.locator("#area-waiting")).to_contain_text("No key.")
    expect(page.locator("#area-now")).to_contain_text("Nothing is running")
    expect(page.locator("#count-overview")).to_have_text("1 waits")


def keys_lead_to_places(page: Page, url: str) -> None:
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_url(f"{url}/runs/")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_contain_text("Runs")
    expect(page.locator("#keys-words")).to_contain_text("Exemplar threshold")
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("searchbox").first.fill("g o ?")
    expect(page.locator("#keys")).to_be_hidden()
    assert page.url.startswith(f"{url}/runs/")


def the_palette_leads_to_pages(page: Page, url: str) -> None:
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-words")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    page.get_by_role("link", name="Search").click()
    expect(page.locator("#palette-recent [aria-selected=true], #palette-here [aria-selected=true]")).to_have_count(1)
    first = page.locator("#palette-words").get_attribute("aria-activedescendant")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#palette-words")).not_to_have_attribute("aria-activedescendant", str(first))
    page.keyboard.press("ArrowUp")
    page.keyboard.type("settings")
    expect(page.locator("#palette [aria-selected=true]").first).to_contain_text("Settings")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"{re.escape(url)}/settings/"))


def the_palette_acts(page: Page, url: str) -> None:
    page.goto(url)
    for words, theme in (("switch theme", "light"), ("theme", "dark")):
        page.keyboard.press("Control+k")
        page.locator("#palette-words").fill(words)
        expect(page.locator("#palette-actions [aria-selected=true]")).to_contain_text("Switch theme")
        page.locator("#palette-actions [aria-selected=true]").click()
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
    page.keyboard.press("Control+k")
    page.locator("#palette-words").fill("")
    expect(page.locator("#palette-found")).to_contain_text("Your latest runs")
    page.locator("#palette-words").fill("shrtcuts")  # a letter is missing
    expect(page.locator("#palette-actions [aria-selected=true]")).to_contain_text("Shortcuts")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.press("t")
    expect(page.locator("html")).not_to_have_attribute("data-theme", "dark")
    page.keyboard.press("Control+k")
    page.locator("#palette-words").fill("copy link")
    page.get_by_role("option", name="Copy link to this page").click()
    expect(page.locator("#toasts")).to_contain_text("copied")
    page.locator("#toasts").get_by_role("button", name="Close").click()


def the_palette_signs_out(page: Page, url: str) -> None:
    page.keyboard.press("Control+k")
    page.locator("#palette-words").fill("sign out")
    page.get_by_role("option", name="Sign out", exact=True).click()
    page.wait_for_url(f"{url}/sign-in/**")


def the_theme_stays(page: Page) -> None:
    for theme in ("light", "dark"):
        page.keyboard.press("t")
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def the_link_is_told(page: Page) -> None:
    page.context.set_offline(True)
    expect(page.locator("#away")).to_contain_text("You are offline")
    page.context.set_offline(False)
    expect(page.locator("#away")).to_be_hidden()
    page.route("**/pulse/", lambda route: route.abort("connectionrefused"))
    page.evaluate("htmx.trigger('#pulse', 'look')")
    expect(page.locator("#away")).to_contain_text("does not answer")
    page.unroute("**/pulse/")
    page.evaluate("htmx.trigger('#pulse', 'look')")
    expect(page.locator("#away")).to_be_hidden()
    page.evaluate("htmx.ajax('GET', '/runs/999/', '#say')")
    expect(page.locator("#toasts")).to_contain_text("not there any more")
    page.locator("#toasts").get_by_role("button", name="Close").click()
    expect(page.locator("#toasts li")).to_have_count(0)
