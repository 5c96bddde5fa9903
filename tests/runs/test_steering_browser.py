"""Steering in a real browser: notes that the agent would not read stay, drafts outlive the page, limits change."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from experiments.core import transcript
from tests.support.browser import aside, needs_chromium, open_page
from tests.support.builders import make_run, replied, started
from workers.record.events import Ended
from workers.record.replies import Conclusion

pytestmark = [
    pytest.mark.django_db(transaction=True),
    needs_chromium,
]
WORDS = "And <b>on snow</b>?"


def test_a_run_is_steered_without_losing_a_word(live_server: Any, client: Client, owner: User) -> None:
    client.force_login(owner)
    run = make_run(owner)
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "reply", replied(heard=1))
    with open_page(live_server.url, client) as page:
        page.goto(f"{live_server.url}{run.get_absolute_url()}")
        limits_change_in_place(page)
        a_note_is_sent_with_the_keyboard(page)
        a_draft_outlives_the_page(page)
        aside(lambda: transcript.append(run.pk, "concluded", Ended("", Conclusion("Red.", ("red",)))))
        refused_words_stay_and_go_with_a_fork(page)
    assert [event.kind for event in run.events.order_by("seq")][2:] == ["limits", "note", "concluded"]
    assert run.events.get(kind="limits").payload["limits"]["rounds"] == 30
    assert run.events.get(kind="note").payload["text"] == "Look at the ground."


def limits_change_in_place(page: Page) -> None:
    page.locator("#menu summary").click()
    page.get_by_text("Change limits…").click()
    page.locator("#steer [name=rounds]").fill("0")
    page.get_by_role("button", name="Change the limits").click()
    expect(page.locator(".limits-form .field-error")).to_contain_text("above 0")
    page.locator("#steer [name=rounds]").fill("30")
    page.get_by_role("button", name="Change the limits").click()
    expect(page.locator("#steer")).to_be_hidden()
    expect(page.locator("#toasts")).to_contain_text("The new limits hold from now on.")


def a_note_is_sent_with_the_keyboard(page: Page) -> None:
    box = page.get_by_label("Message to agent")
    box.fill("Look at the ground.")
    box.press("Control+Enter")
    expect(box).to_have_value("")


def a_draft_outlives_the_page(page: Page) -> None:
    page.get_by_label("Message to agent").fill(WORDS)
    page.reload()
    expect(page.get_by_label("Message to agent")).to_have_value(WORDS)


def refused_words_stay_and_go_with_a_fork(page: Page) -> None:
    box = page.get_by_label("Message to agent")
    box.press("Control+Enter")
    expect(page.locator("#note .error")).to_contain_text("The agent would not read this.")
    expect(box).to_have_value(WORDS)
    page.get_by_role("link", name="Fork the run with this note").click()
    expect(page.get_by_label("Note")).to_have_value(WORDS)
