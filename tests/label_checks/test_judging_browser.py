"""Judging images in a real browser: keys, a thumb, the next ones behind, an answer that does not arrive."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from experiments.models import ConceptAnswer, LabelCheck
from tests.support import trials
from tests.support.browser import aside, needs_chromium, open_page, overhang
from tests.support.judged_images import make_waiting
from tests.support.people import member
from tests.support.pictures import stored

pytestmark = [pytest.mark.django_db(transaction=True), needs_chromium, pytest.mark.usefixtures("redis_url")]
EXPECTED = re.compile("ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_REFUSED|WebSocket|404|htmx:")
IMAGES = 5


@pytest.fixture
def check(db: None) -> LabelCheck:
    keys = [stored(colour) for colour in trials.COLOURS[:IMAGES]]
    return make_waiting(trials.unit(7), keys=keys)


def said() -> list[str]:
    """What was kept, in the order in which it was said."""
    return aside(lambda: list(ConceptAnswer.objects.order_by("pk").values_list("answer", flat=True)))


def test_a_person_judges_with_the_keyboard_and_loses_no_answer(live_server, client: Client, check: LabelCheck) -> None:
    client.force_login(member("judge", "REVIEWER"))
    errors: list[str] = []
    with open_page(live_server.url, client, errors) as page:
        page.goto(f"{live_server.url}/review/")
        page.locator("#to-judge").get_by_role("link", name="Judge").click()
        page.wait_for_url("**/judging/**")  # and for its scripts: a key before them goes nowhere
        expect(page.locator(".question:visible")).to_have_count(1)
        expect(page.locator(".question")).to_have_count(3)
        press(page, "y", 1)
        press(page, "n", 2)
        page.context.set_offline(True)
        page.keyboard.press("?")
        expect(page.locator("#trouble")).to_contain_text("was not kept")
        expect(page.locator("#done")).to_have_text("2")
        page.context.set_offline(False)
        press(page, "?", 3)
        page.keyboard.press("u")
        expect(page.locator("#done")).to_have_text("2")
        press(page, "n", 3)
        press(page, "y", 4)
        page.keyboard.press("n")
        expect(page.locator(".check-head")).to_contain_text("Is the label right?")
        expect(page.get_by_text("A worker will show the unit")).to_be_visible()
    assert said() == ["yes", "no", "no", "yes", "no"]
    assert [error for error in errors if not EXPECTED.search(error)] == []


def press(page: Page, key: str, done: int) -> None:
    """A key, once the images behind are there; then so many are judged."""
    expect(page.locator(".question")).to_have_count(min(3, IMAGES + 1 - done))
    page.keyboard.press(key)
    expect(page.locator("#done")).to_have_text(str(done))


def test_a_thumb_reaches_the_answers_on_a_phone(live_server, client: Client, check: LabelCheck) -> None:
    client.force_login(member("judge", "REVIEWER"))
    with open_page(live_server.url, client, []) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(f"{live_server.url}/judging/checks/{check.pk}/")
        assert overhang(page) == 0
        for name in ("Yes", "No", "Cannot tell"):
            box = page.locator(".question:visible").get_by_role("button", name=name, exact=True).bounding_box()
            assert box is not None
            assert box["height"] >= 44
            assert 844 / 3 < box["y"] < 844 - box["height"], "in the lower part, without scrolling"
        page.locator(".question:visible").get_by_role("button", name="No", exact=True).click()
        expect(page.locator("#done")).to_have_text("1")
        expect(page.locator(".question")).to_have_count(3)
    assert said() == ["no"]
