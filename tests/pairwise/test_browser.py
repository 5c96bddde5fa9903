"""Judging in a real browser: keys, the next pair behind the one on screen, and an answer that does not arrive."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from experiments.models import PairwiseTrial, Vote
from tests.support import trials
from tests.support.browser import aside, needs_chromium, open_page
from tests.support.keyboard import Keyboard
from tests.support.people import member
from tests.support.pictures import stored

EXPECTED = re.compile("ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_REFUSED|WebSocket|404|htmx:")
PAIRS = 5

pytestmark = [
    pytest.mark.django_db(transaction=True),
    needs_chromium,
]


def chosen() -> list[str]:
    """What was kept, in the order of the pairs."""
    return aside(lambda: [screen(choice) for choice in Vote.objects.order_by("pair__position")])


def screen(choice: Vote) -> str:
    """A choice as it looked."""
    return (
        choice.answer
        if choice.answer == "neither"
        else "first"
        if (choice.answer == "a") != choice.swapped
        else "second"
    )


@pytest.fixture
def trial(owner) -> PairwiseTrial:
    for number, colour in enumerate(trials.COLOURS[:PAIRS]):
        each = trials.unit(number)
        trials.exemplars(each, stored(colour))
        trials.label(each, f"{colour} balls", "person")
        trials.label(each, f"something {colour}")
    return trials.trial(owner, source=["person", trials.MILAN], repeats=0, known_answers=0)


def test_a_judge_works_with_the_keyboard_and_loses_no_answer(live_server, client: Client, trial: PairwiseTrial) -> None:
    client.force_login(member("judge", "REVIEWER"))
    errors: list[str] = []
    with open_page(live_server.url, client, errors) as page:
        page.goto(f"{live_server.url}/judging/trials/{trial.pk}/")
        expect(page.locator(".pair")).to_have_count(2)
        press(page, "ArrowLeft", 1)
        press(page, "2", 2)
        page.context.set_offline(True)
        page.keyboard.press("0")
        expect(page.locator("#trouble")).to_contain_text("was not kept")
        expect(page.locator("#done")).to_have_text("2")
        page.context.set_offline(False)
        press(page, "0", 3)
        press(page, "ArrowRight", 4)
        page.keyboard.press("u")
        expect(page.locator("#done")).to_have_text("3")
        press(page, "1", 4)
        page.keyboard.press("1")
        expect(page.locator(".empty")).to_contain_text("All 5 pairs are judged")
    assert chosen() == ["first", "second", "neither", "first", "first"]
    assert [error for error in errors if not EXPECTED.search(error)] == []


def press(page: Page, key: str, done: int) -> None:
    """A key, once the next pair is there to be seen behind; then so many are judged."""
    expect(page.locator(".pair")).to_have_count(min(2, PAIRS + 1 - done))
    page.keyboard.press(key)
    expect(page.locator("#done")).to_have_text(str(done))


def test_all_pairs_from_overview_take_one_press_each(live_server, client: Client, trial: PairwiseTrial) -> None:
    client.force_login(member("judge", "REVIEWER"))
    with open_page(live_server.url, client) as page:
        keys = Keyboard(page)
        page.goto(live_server.url)
        keys.press("g", "w")
        page.wait_for_url("**/review/")
        keys.press("p")
        page.wait_for_url("**/pairwise/")
        keys.press("n")
        page.wait_for_url("**/judging/**")
        for done in range(PAIRS):
            expect(page.locator("#done")).to_have_text(str(done))
            expect(page.locator(".pair:not([hidden])")).to_have_count(1)
            keys.press("12"[done % 2])
        expect(page.locator(".empty")).to_contain_text("All 5 pairs are judged")
        assert keys.count == 4 + PAIRS, keys.pressed
    assert chosen() == ["first", "second", "first", "second", "first"]


def test_a_judge_who_goes_by_tab_goes_on_where_they_were(live_server, client: Client, trial: PairwiseTrial) -> None:
    client.force_login(member("judge", "REVIEWER"))
    with open_page(live_server.url, client) as page:
        keys = Keyboard(page)
        page.goto(f"{live_server.url}/judging/trials/{trial.pk}/")
        keys.reach(page.locator(".pair:not([hidden]) .option").first)
        keys.press("Enter")
        expect(page.locator("#done")).to_have_text("1")
        expect(page.locator(".pair:not([hidden]) .option").first).to_be_focused()
