"""Steering in a real browser: words that nobody would hear stay, drafts outlive the page, limits change in place."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from playwright.sync_api import Page, expect, sync_playwright

from experiments.core import transcript
from tests.house.test_frame_browser import CHROMIUM, FLAGS
from tests.support.builders import make_run, replied, started
from workers.record.events import Ended
from workers.record.replies import Conclusion

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHROMIUM is None, reason="No Chromium found: `apt-get install chromium` brings it."),
]
WORDS = "And <b>on snow</b>?"


def test_a_run_is_steered_without_losing_a_word(live_server: Any, client: Client, owner: User) -> None:
    client.force_login(owner)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    run = make_run(owner)
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "reply", replied(heard=1))
    with sync_playwright() as playwright:
        context = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS).new_context()
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
        page = context.new_page()
        page.goto(f"{live_server.url}{run.get_absolute_url()}")
        limits_change_in_place(page)
        a_note_is_sent_with_the_keyboard(page)
        a_draft_outlives_the_page(page)
        elsewhere(lambda: transcript.append(run.pk, "concluded", Ended("", Conclusion("Red.", ("red",)))))
        refused_words_stay_and_go_with_a_fork(page)
    assert [event.kind for event in run.events.order_by("seq")][2:] == ["limits", "note", "concluded"]
    assert run.events.get(kind="limits").payload["limits"]["rounds"] == 30
    assert run.events.get(kind="note").payload["text"] == "Look at the ground."


def elsewhere(do: Callable[[], object]) -> None:
    """What happens without this browser; Playwright's thread may not touch the database."""

    def work() -> None:
        do()
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def limits_change_in_place(page: Page) -> None:
    page.locator("#menu summary").click()
    page.get_by_text("Change limits…").click()
    page.locator("#steer [name=rounds]").fill("0")
    page.get_by_role("button", name="Change the limits").click()
    expect(page.locator(".limits-form .bad")).to_contain_text("above 0")
    page.locator("#steer [name=rounds]").fill("30")
    page.get_by_role("button", name="Change the limits").click()
    expect(page.locator("#steer")).to_be_hidden()
    expect(page.locator("#toasts")).to_contain_text("The new limits hold from now on.")


def a_note_is_sent_with_the_keyboard(page: Page) -> None:
    box = page.get_by_label("Note to the agent")
    box.fill("Look at the ground.")
    box.press("Control+Enter")
    expect(box).to_have_value("")


def a_draft_outlives_the_page(page: Page) -> None:
    page.get_by_label("Note to the agent").fill(WORDS)
    page.reload()
    expect(page.get_by_label("Note to the agent")).to_have_value(WORDS)


def refused_words_stay_and_go_with_a_fork(page: Page) -> None:
    box = page.get_by_label("Note to the agent")
    box.press("Control+Enter")
    expect(page.locator("#note .error")).to_contain_text("Nobody would hear this.")
    expect(box).to_have_value(WORDS)
    page.get_by_role("link", name="Fork the run with this note").click()
    expect(page.get_by_label("Note")).to_have_value(WORDS)
