"""New run in a real browser: on one screen, by keyboard, with a question that follows what is chosen."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from experiments.models import Backbone, Dataset, Layer, Run, Toolset, VisionModelRow
from tests.support.browser import aside, needs_chromium, open_page

pytestmark = [pytest.mark.django_db(transaction=True), needs_chromium]
EXPECTED = re.compile("WebSocket|404|htmx:")  # requests that were overtaken are aborted
SCREEN = {"width": 1440, "height": 900}


def test_a_run_is_asked_for_on_one_screen_by_keyboard(live_server, client: Client, owner: User, redis_url: str) -> None:
    client.force_login(owner)
    fill_catalogue()
    errors: list[str] = []
    with open_page(live_server.url, client, errors, viewport=SCREEN) as page:
        page.goto(f"{live_server.url}/")
        page.keyboard.press("g")
        page.keyboard.press("n")
        expect(page.locator("#id_question")).to_be_focused()
        expect(page.locator("#start")).to_be_in_viewport(ratio=1)
        page.keyboard.press("Alt+u")
        page.keyboard.type("12")
        expect(page.locator("#id_unit")).to_have_value("12")
        a_question_follows_what_is_chosen_unless_typed(page)
        a_bias_is_looked_for_in_classes(page)
        the_button_can_be_pressed_while_the_page_asks(page)
        page.keyboard.press("Control+Enter")
        page.wait_for_url(f"{live_server.url}/runs/*/")
        run = aside(Run.objects.get)
        assert (run.task, run.layer, run.unit, run.question) == ("bias", "logits", 0, "My own?")
    assert [error for error in errors if not EXPECTED.search(error)] == []


def fill_catalogue() -> None:
    model = VisionModelRow.objects.create(name="toybox", revision="1")
    Layer.objects.create(model=model, position=0, name="layer4", path="layer4", kind="conv", units=16)
    names = {"kind": "logit", "units": 2, "names": ["ball", "crane"]}
    Layer.objects.create(model=model, position=1, name="logits", path="head", **names)
    Dataset.objects.create(key="toybox", label="toybox validation scenes", images=3000)
    Backbone.objects.create(key="scripted", label="Scripted scientist")
    Toolset.objects.create(key="toybox", label="Toys")


def a_question_follows_what_is_chosen_unless_typed(page: Page) -> None:
    question, units = page.locator("#id_question"), page.locator("#id_unit")
    units.fill("12")
    expect(question).to_have_value("What does unit 12 of layer4 in toybox respond to?")
    units.fill("3, 5, 8-12")
    expect(question).to_have_value("What does unit {unit} of {layer} in {model} respond to?")
    expect(page.locator("#start")).to_have_text("Forecast 7 runs")
    question.fill("Is unit 12 red?")
    units.fill("13")
    expect(page.locator("#advice")).to_contain_text("speaks of unit 12, but unit 13 is chosen")
    expect(question).to_have_value("Is unit 12 red?")
    question.fill("My own?")


def a_bias_is_looked_for_in_classes(page: Page) -> None:
    page.locator("[name=task][value=bias]").check()
    expect(page.locator("#id_unit")).to_have_value("ball (0)")
    expect(page.locator("#id_question")).to_have_value("My own?")


def the_button_can_be_pressed_while_the_page_asks(page: Page) -> None:
    page.evaluate("window.start = document.getElementById('start')")
    with page.expect_response(re.compile("/query/unit/")):
        page.evaluate("htmx.trigger('#preview', 'input')")
    expect(page.locator("#answer")).to_be_visible()
    page.wait_for_function("!document.querySelector('.htmx-swapping, .htmx-settling, .htmx-request')")
    assert page.evaluate("window.start.isConnected")
