"""The whole path in a real browser, against `manage.py up` as processes of its own. Any console error fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.browser import needs_chromium, open_browser, wait_for_end
from tests.support.installation import Installation, installed

pytestmark = [
    pytest.mark.timeout(240),
    needs_chromium,
]


FINE = ("ERR_INTERNET_DISCONNECTED", "htmx:sendAbort", "htmx:afterRequest")
"""What a console may say: a link that a test cut, and a question that ended with the part of the page that asked it."""


@pytest.fixture(scope="module")
def site(quick_state: Path) -> Iterator[Installation]:
    """An installation whose scripted scientist writes slowly enough to be watched."""
    with installed(quick_state, "--no-example", MAIA_WORDS_PER_SECOND="120") as installation:
        installation.link()
        yield installation


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def session(site: Installation, browser: Browser) -> Iterator[BrowserContext]:
    """A browser that has signed in with the one-time link."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.link())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    page.close()
    yield context
    context.close()


@pytest.fixture
def page(session: BrowserContext) -> Iterator[Page]:
    """A page whose console stays free of errors, those of the Content-Security-Policy included."""
    page = session.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert not [error for error in errors if not any(fine in error for fine in FINE)], errors


def ask(page: Page, site: Installation, unit: int) -> int:
    """Ask about a unit, as a person does; the number of the run."""
    page.goto(f"{site.url}/")
    page.get_by_role("link", name="New run").first.click()
    page.get_by_label("Layer").select_option("layer4")
    page.get_by_label("Units", exact=True).fill(str(unit))
    expect(page.locator("#preview img").first).to_be_visible()
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\d+/"))
    return int(page.url.rstrip("/").split("/")[-1])


def events(site: Installation, run: int) -> list[int]:
    return [seq for (seq,) in site.rows("SELECT seq FROM experiments_event WHERE run_id = ? ORDER BY seq", run)]


def shown(page: Page) -> set[str]:
    """The anchors of the events on the page."""
    found = page.evaluate("[...document.querySelectorAll('.event, .event > [id]')].map(each => each.id)")
    return set(found)


def test_a_person_asks_watches_reloads_and_reads_the_conclusion(site: Installation, page: Page) -> None:
    run = ask(page, site, 12)
    expect(page.locator("#connection")).to_contain_text("Connected")
    expect(page.locator("#draft-words")).not_to_be_empty()
    expect(page.locator(".experiment").first).to_be_visible()
    grown = len(shown(page))
    page.reload()
    assert len(shown(page)) >= grown
    wait_for_end(page, "concluded")
    pictures = page.locator(".experiment img")
    expect(pictures.first).to_be_visible()
    expect(pictures.first).not_to_have_js_property("naturalWidth", 0)
    label = site.rows("SELECT text FROM experiments_label WHERE run_id = ? ORDER BY position", run)
    for (text,) in label:
        expect(page.locator("#side")).to_contain_text(text)
    live = shown(page)
    page.reload()
    assert shown(page) == live, "the page drawn at once differs from the one that grew"


def test_a_viewer_who_lost_the_network_misses_nothing(site: Installation, page: Page) -> None:
    run = ask(page, site, 3)
    expect(page.locator(".experiment").first).to_be_visible()
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_contain_text(re.compile("Offline|Reconnecting"))
    before = len(events(site, run))
    site.until(lambda: len(events(site, run)) > before, "the run did not go on")
    page.context.set_offline(False)
    wait_for_end(page, "concluded")
    first = shown(page)
    page.reload()
    assert shown(page) == first


def test_a_run_stops_when_a_person_says_so(site: Installation, page: Page) -> None:
    run = ask(page, site, 5)
    expect(page.locator("#draft-words")).not_to_be_empty()
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page, "cancelled")
    assert site.rows("SELECT status FROM experiments_run WHERE id = ?", run) == [("cancelled",)]
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()


def test_it_says_what_is_wrong_with_a_query_and_keeps_what_was_typed(site: Installation, page: Page) -> None:
    page.goto(f"{site.url}/query/")
    page.get_by_role("textbox", name="Question").fill("Is it red?")
    page.get_by_label("Units", exact=True).fill("99999")
    expect(page.locator("#unit-note")).to_contain_text("to")
    page.get_by_role("button", name="Start run").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("textbox", name="Question")).to_have_value("Is it red?")
