"""Ten reviews by keyboard alone, from Overview to the last: every mark that a judgment needs, and how many presses."""

from __future__ import annotations

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from experiments.core.actors import Actor
from experiments.models import Review, ReviewQueue, Run
from experiments.reviews import actions
from tests.support.browser import aside, needs_chromium, open_page
from tests.support.builders import make_run
from tests.support.keyboard import Keyboard
from tests.support.people import member

pytestmark = [pytest.mark.django_db(transaction=True), needs_chromium]
TEN = 10
MOST = 73
"""Presses from Overview to the tenth: three to the first item, then five marks, a verdict and Enter for each."""


@pytest.fixture
def queue(owner) -> ReviewQueue:
    for number in range(1, TEN + 1):
        make_run(owner, status="concluded", question=f"Question {number}?")
    return actions.make_queue(Actor(owner), Run.objects.order_by("pk"), ReviewQueue(name="Ten to judge"))


def test_ten_reviews_take_the_keyboard_alone_and_few_presses(live_server, client: Client, queue: ReviewQueue) -> None:
    client.force_login(member("first", "REVIEWER"))
    with open_page(live_server.url, client, viewport={"width": 1440, "height": 900}) as page:
        keys = Keyboard(page)
        page.goto(live_server.url)
        keys.press("g", "w")
        page.wait_for_url("**/review/")
        keys.press("n")
        for number in range(1, TEN + 1):
            expect(page.get_by_role("heading", level=1)).to_have_text(f"Question {number}?")
            expect(page.locator(".score-line").first).to_be_focused()
            keys.press("4", "5", "3", "2", "1", "avr"[number % 3], "Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Ten to judge")
        assert keys.count <= MOST, keys.pressed
    rows = Review.objects.filter(state="submitted")
    assert {row.item.position: (row.supported, row.samples, row.verdict) for row in aside(lambda: list(rows))} == {
        number: (4, 1, ("accept", "revise", "reject")[number % 3]) for number in range(1, TEN + 1)
    }


def test_the_keys_of_a_review_scroll_its_evidence_and_turn_to_its_neighbours(
    live_server, client: Client, queue: ReviewQueue
) -> None:
    client.force_login(member("first", "REVIEWER"))
    with open_page(live_server.url, client, viewport={"width": 1440, "height": 500}) as page:
        page.emulate_media(reduced_motion="reduce")
        page.goto(f"{live_server.url}/review/{queue.pk}/next/")
        keys = Keyboard(page)
        expect(page.locator(".score-line").first).to_be_focused()
        keys.press("PageDown")
        page.wait_for_function("scrollY > 100")
        keys.press("PageUp")
        page.wait_for_function("scrollY === 0")
        keys.press(" ")
        page.wait_for_function("scrollY > 100")
        assert not page.locator("#rubric input:checked").count(), "the space bar gives no score"
        keys.press("Enter")
        expect(page.locator("#told")).to_contain_text("Still to be filled in")
        keys.press("]")
        expect(page.get_by_role("heading", level=1)).to_have_text("Question 2?")
        keys.press("n")
        expect(page.locator(".score-line").first).to_be_focused()
        keys.press("[")
        expect(page.get_by_role("heading", level=1)).to_have_text("Question 1?")
        keys.press("?")
        _tells(page, "Submit, and show the next item", "Scroll the evidence", "The item after")


def _tells(page: Page, *words: str) -> None:
    """The list of keys names each."""
    listed = page.locator("#keys")
    expect(listed).to_be_visible()
    for each in words:
        expect(listed).to_contain_text(each)
