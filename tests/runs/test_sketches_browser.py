"""A run page draws its experiments as sketches: all words, in their place, and the pictures when the reader is near."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from experiments.models import Run
from tests.support.browser import needs_chromium, open_page
from tests.support.long_run import long_run

pytestmark = pytest.mark.django_db
MOST, MAX_REQUESTS = 150_000, 40
HEIGHTS = "() => [...document.querySelectorAll('#events > .event')].map((each) => each.offsetHeight)"


@pytest.fixture
def run(owner: User) -> Run:
    return long_run(owner, 6, 40)


def test_the_page_has_all_words_of_its_experiments_and_no_address_of_their_images(as_owner: Client, run: Run) -> None:
    text = as_owner.get(run.get_absolute_url()).content.decode()
    events = text.partition('id="events"')[2].partition('id="tail"')[0]
    assert events.count('class="title">a red ball') == events.count(">a red ball") > 0
    assert events.count('class="image-card"') == 192  # with the originals of edits, which stand once
    assert not re.search(r"/images/[0-9a-f]{64}", events)
    whole = as_owner.get(f"{run.get_absolute_url()}?drawn=whole").content.decode()
    assert whole.partition('id="events"')[2].count("/thumb-160.webp 160w") > 192
    assert f'href="{run.get_absolute_url()}?drawn=whole"' in text, "for browsers without scripts"


@pytest.mark.django_db(transaction=True)
@needs_chromium
def test_pictures_come_to_whoever_reads_on_and_nothing_moves(live_server, as_owner: Client, run: Run) -> None:
    errors: list[str] = []
    with open_page(live_server.url, as_owner, errors, viewport={"width": 1440, "height": 900}) as page:
        page.goto(f"{live_server.url}{run.get_absolute_url()}")
        last = page.locator("#experiment-6")
        expect(last).to_have_attribute("data-whole", re.compile("drawn=whole"))
        expect(page.locator("#events > .event > header > .comment-button").first).to_be_attached()  # comments have come
        before = page.evaluate(HEIGHTS)
        last.get_by_text("Show program").click()
        expect(last.locator(".image-card img.masked").first).to_be_attached()
        expect(last.locator(".code span").first).to_be_visible()
        expect(last.locator(".image-card .bar")).to_have_count(32)
        last.get_by_text("Hide program").click()
        assert page.evaluate(HEIGHTS) == before
        the_light_box_shows_what_has_come(page)
    assert [error for error in errors if "/ws/live/" not in error] == []  # this server has no sockets


def the_light_box_shows_what_has_come(page: Page) -> None:
    page.locator("#experiment-6 .frame").first.click()
    expect(page.locator("#lightbox-strip li")).to_have_count(22)  # ten, and edits beside what they were made from
    page.keyboard.press("Escape")


@pytest.mark.django_db(transaction=True)
@needs_chromium
def test_a_first_visit_to_a_run_of_six_rounds_fetches_little(live_server, as_owner: Client, run: Run) -> None:
    sizes: list[int] = []
    with open_page(live_server.url, as_owner, viewport={"width": 1440, "height": 900}) as page:
        wire = page.context.new_cdp_session(page)
        wire.send("Network.enable")
        wire.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
        page.goto(f"{live_server.url}{run.get_absolute_url()}", wait_until="networkidle")
    assert sum(sizes) < MOST
    assert len(sizes) < MAX_REQUESTS
