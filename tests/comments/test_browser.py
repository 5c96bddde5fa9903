"""Two people in two browsers: what one says of selected words, the other is told of and sees without loading again."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from experiments.models import Run
from tests.support.browser import needs_chromium, new_page, open_browser
from tests.support.long_run import long_run
from tests.support.people import member, signed_in
from tests.support.served import served

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),  # WhiteNoise reads its files at once
    needs_chromium,
]
SELECT = """([id, from, to]) => {
  const text = document.querySelector(`#${id} .prose p`).firstChild;
  getSelection().setBaseAndExtent(text, from, text, to);
}"""


@pytest.fixture
def colleague(db: None) -> User:
    return member("colleague", "RESEARCHER")


def test_two_people_talk_about_a_run(redis_url: str, owner: User, colleague: User) -> None:
    run = long_run(owner, 2, 2)
    clients = [signed_in(person) for person in (owner, colleague)]
    errors: list[str] = []
    with open_browser() as browser, served() as url:
        one, other = (new_page(browser, url, client, errors) for client in clients)
        other.goto(f"{url}/runs/{run.pk}/")
        expect(other.locator("#comment-marks")).to_have_attribute("data-open", "0")
        one.goto(f"{url}/runs/{run.pk}/")
        words_are_spoken_of(one)
        the_other_is_told_and_answers(other)
        the_answer_comes_by_itself(one)
        a_draft_outlives_the_page(one)
        a_link_leads_to_the_thread(other, url, run)
        browser.close()
    assert errors == []


def words_are_spoken_of(page: Page) -> None:
    expect(page.locator("#e2 .comment-button")).to_be_attached()
    page.evaluate(SELECT, ["e2", 15, 37])
    page.locator(".quoter").click()
    field = page.locator(".slot textarea")
    expect(field).to_be_focused()
    page.keyboard.type("Why not @coll")
    expect(page.locator("#mentions [aria-selected=true]")).to_have_text("@colleague")
    page.keyboard.press("Enter")
    page.keyboard.type("two?")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".slot .comment")).to_contain_text("Why not @colleague two?")
    expect(page.locator("#e2 mark.quoted")).to_have_text("Four of five exemplars")


def the_other_is_told_and_answers(page: Page) -> None:
    expect(page.locator("#bell .count")).to_contain_text("1")
    expect(page.locator("#toasts")).to_contain_text("owner mentioned you")
    expect(page.locator("#e2 .comment-button")).to_have_text("1 comment")
    page.locator("#e2 mark.quoted").first.click()
    page.locator(".slot summary", has_text="Reply").click()
    page.locator(".slot .replying textarea").fill("Two would do.")
    page.locator(".slot .replying button").click()
    expect(page.locator(".slot .comment")).to_have_count(2)


def the_answer_comes_by_itself(page: Page) -> None:
    expect(page.locator(".slot .comment")).to_have_count(2)
    expect(page.locator("#e2 .comment-button")).to_have_text("2 comments")
    expect(page.locator("#toasts")).to_contain_text("colleague replied")


def a_draft_outlives_the_page(page: Page) -> None:
    page.locator(".slot .comment-form.new textarea").fill("Not said yet")
    page.reload()
    page.locator("#e2 .comment-button").click()
    expect(page.locator(".slot .comment-form.new textarea")).to_have_value("Not said yet")
    page.keyboard.press("Escape")
    expect(page.locator(".slot")).to_have_count(0)
    expect(page.locator("#e2 .comment-button")).to_be_focused()


def a_link_leads_to_the_thread(page: Page, url: str, run: Run) -> None:
    page.goto(f"{url}/notifications/")
    page.locator(".notification a").first.click()
    page.wait_for_url("**/?tab=comments&comment=*")
    expect(page.locator("#tabs [data-tab=comments] .n")).to_have_text("1")
    page.locator("a.location").click()
    expect(page.locator(".slot .comment")).to_have_count(2)
    page.locator(".slot").get_by_role("button", name="Resolve").click()
    expect(page.locator("#e2 mark.quoted")).to_have_count(0)
