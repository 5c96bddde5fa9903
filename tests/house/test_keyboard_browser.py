"""Whoever has no mouse reaches every control of a page, and sees where they are; ticked runs are compared by a key."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from tests.support.api_world import World, fill
from tests.support.browser import needs_chromium, open_page
from tests.support.builders import make_run
from tests.support.keyboard import FOCUS, Keyboard

pytestmark = [pytest.mark.django_db(transaction=True), needs_chromium]
PAGES = (
    *("/", "/query/", "/runs/", "/runs/{run}/", "/runs/{run}/?tab=experiments", "/runs/{run}/?tab=comments"),
    *("/experiments/", "/units/", "/sweeps/", "/evaluations/", "/review/", "/pairwise/", "/search/?q=red"),
    *("/exports/", "/settings/you/", "/settings/tokens/", "/query/presets/", "/runs/{run}/shares/"),
)
MARK = """() => {
  const controls = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
  document.activeElement.blur();
  for (const each of document.querySelectorAll(controls)) {
    const standing = each.checkVisibility() && !each.closest('dialog:not([open])') && each.getClientRects().length;
    if (standing && !each.disabled && each.tabIndex >= 0 && each.type !== 'radio') each.dataset.toReach = 'yes';
  }
}"""
NOTE = """() => {
  const here = document.activeElement;
  delete here.dataset.toReach;
  return here === document.body ? '' : here.outerHTML.slice(0, 200);
}"""
LEFT = "() => [...document.querySelectorAll('[data-to-reach]')].map((each) => each.outerHTML.slice(0, 200))"
OWN_RING = ('type="date"', 'type="file"')
"""Fields that draw parts of themselves, and show where one is in them."""


@pytest.fixture
def world(owner: User) -> World:
    return fill(owner)


def test_tab_reaches_every_control_and_each_shows_the_focus(live_server, as_owner: Client, world: World) -> None:
    with open_page(live_server.url, as_owner, viewport={"width": 1440, "height": 900}) as page:
        for path in PAGES:
            page.goto(live_server.url + path.format(run=world.run.pk))
            page.wait_for_load_state("networkidle")
            assert _walk(page) == ([], []), path


def _walk(page: Page) -> tuple[list[str], list[str]]:
    """What Tab does not come to, and what does not show that it has the focus. One from the end, once round."""
    page.evaluate(MARK)
    lost: list[str] = []
    for _ in range(2):  # a page that put the focus somewhere goes on from there, and round
        for _ in range(300):
            page.keyboard.press("Tab")
            here, is_shown = page.evaluate(f"() => [({NOTE})(), ({FOCUS})()]")
            if not here:
                break
            if not is_shown and not any(each in here for each in OWN_RING):
                lost.append(here)
        if not (left := page.evaluate(LEFT)):
            break
    return left, lost


def test_ticked_runs_are_compared_by_a_key(live_server, owner: User, as_owner: Client) -> None:
    for unit in range(2):
        make_run(owner, unit=unit, status="concluded")
    with open_page(live_server.url, as_owner) as page:
        keys = Keyboard(page)
        page.goto(f"{live_server.url}/runs/")
        keys.press("c")
        keys.press("j", "x", "j", "x")
        expect(page.locator("#chosen")).to_contain_text("2")
        keys.press("c")
        page.wait_for_url("**/compare/**")
        assert keys.count == 6, keys.pressed
