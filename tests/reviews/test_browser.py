"""Focus mode in a real browser: keys, a draft saved as it is typed, the next item without a wait, two tabs."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from playwright.sync_api import Page, Route, expect

from experiments.core.actors import Actor
from experiments.models import Review, ReviewQueue, Run
from experiments.reviews import actions
from tests.support.browser import aside, assert_fits, needs_chromium, open_page
from tests.support.builders import make_run
from tests.support.people import member

EXPECTED = re.compile("404|409|htmx:|WebSocket")
"""There is no socket here; a conflict is told beside the rubric."""

pytestmark = [
    pytest.mark.django_db(transaction=True),
    needs_chromium,
]


def queue() -> ReviewQueue:
    owner = member("asker", "RESEARCHER")
    for number in range(1, 4):
        make_run(owner, status="concluded", question=f"Question {number}?")
    return actions.make_queue(Actor(owner), Run.objects.order_by("pk"), ReviewQueue(name="Pass"))


def test_a_reviewer_needs_no_mouse_and_loses_nothing(live_server, client: Client) -> None:
    client.force_login(member("first", "REVIEWER"))
    address = f"{live_server.url}/review/{queue().pk}"
    errors: list[str] = []
    with open_page(live_server.url, client, errors) as page:
        page.goto(f"{address}/next/")
        keys_score_the_lines(page)
        a_draft_outlives_a_reload(page)
        two_tabs_are_told(page, page.context.new_page())
        the_next_item_is_there_at_once(page, address)
        what_is_refused_comes_back(page)
        a_phone_is_wide_enough(page)
    assert [error for error in errors if not EXPECTED.search(error)] == []


def checked(page: Page) -> dict[str, str]:
    return page.evaluate("Object.fromEntries(new FormData(document.getElementById('rubric')))")


def keys_score_the_lines(page: Page) -> None:
    page.keyboard.press("Control+Enter")
    expect(page.locator("#told")).to_contain_text("Supported by the evidence, Specific, Complete")
    for key in ("4", "3", "3", "ArrowUp", "5", "2", "1", "r"):
        page.keyboard.press(key)
    known = {"supported": "4", "specific": "3", "complete": "5", "confounds": "2", "samples": "1", "verdict": "reject"}
    assert known.items() <= checked(page).items()
    page.keyboard.press("g")
    page.keyboard.press("a")
    assert checked(page)["verdict"] == "reject", "the second key of two is no verdict"


def a_draft_outlives_a_reload(page: Page) -> None:
    page.get_by_label("Note").fill("Typed 1 2 3 a v r.")
    expect(page.locator("#saved")).to_contain_text(re.compile(r"Saved \d\d:\d\d"))
    page.reload()
    expect(page.get_by_label("Note")).to_have_value("Typed 1 2 3 a v r.")
    assert checked(page)["verdict"] == "reject"


def two_tabs_are_told(page: Page, other: Page) -> None:
    other.goto(page.url)
    other.get_by_label("Note").fill("From the other tab.")
    expect(other.locator("#saved")).to_contain_text("Saved")
    page.get_by_label("Note").fill("From this tab.")
    expect(page.locator("#told")).to_contain_text("changed elsewhere")
    expect(page.get_by_label("Note")).to_have_value("From this tab.")
    assert aside(lambda: Review.objects.get().note) == "From the other tab."
    page.get_by_role("button", name="Keep what is here").click()
    expect(page.locator("#saved")).to_contain_text(re.compile(r"Saved \d\d:\d\d"))
    assert aside(lambda: Review.objects.get().note) == "From this tab."
    other.close()


def the_next_item_is_there_at_once(page: Page, address: str) -> None:
    page.wait_for_load_state("networkidle")
    held: list[Route] = []
    page.route("**/submit/", lambda route: held.append(route))
    with page.expect_request("**/submit/"):
        page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Question 2?")
    assert aside(lambda: Review.objects.get().state) == "draft", "the server has not even heard of it"
    page.keyboard.press("2")
    held[0].continue_()
    page.unroute("**/submit/")
    page.wait_for_url(f"{address}/items/2/")
    expect(page.locator("#saved")).to_contain_text(re.compile(r"Saved \d\d:\d\d"))
    assert aside(lambda: sorted(Review.objects.values_list("state", "supported"))) == [("draft", 2), ("submitted", 4)]


def what_is_refused_comes_back(page: Page) -> None:
    aside(lambda: Run.objects.filter(question="Question 2?").update(last_seq=3))
    for key in ("1", "1", "1", "1", "a"):
        page.keyboard.press(key)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#told")).to_contain_text("The run has 3 new events")
    expect(page.get_by_role("heading", level=1)).to_have_text("Question 2?")
    page.get_by_role("button", name="I have seen it: submit").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Question 3?")
    expect(page.locator("#line")).to_contain_text("You submitted item 2")


def a_phone_is_wide_enough(page: Page) -> None:
    assert_fits(page, 390)
