"""A long run in a real browser: links to events that are not drawn yet, gaps that fill, tabs and the way back."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from experiments.models import Run
from tests.support.browser import needs_chromium, open_page
from tests.support.long_run import long_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    needs_chromium,
]


def test_a_long_run_is_read_from_any_place(live_server, client: Client, owner: User) -> None:
    client.force_login(owner)
    run = long_run(owner, 120, 2)
    errors: list[str] = []
    with open_page(live_server.url, client, errors) as page:
        address = f"{live_server.url}{run.get_absolute_url()}"
        a_link_leads_to_an_event_that_was_not_drawn(page, address)
        the_place_stays_until_the_reader_moves(page)
        keys_lead_from_round_to_round(page)
        tabs_keep_the_way_back(page, address)
        gaps_fill_and_nothing_moves(page, address, run)
    assert [error for error in errors if "/ws/live/" not in error] == []  # this server has no sockets


def a_link_leads_to_an_event_that_was_not_drawn(page: Page, address: str) -> None:
    page.goto(f"{address}#e180")
    page.wait_for_url(f"{address}?at=180#e180")
    expect(page.locator("#experiment-60")).to_be_in_viewport()
    expect(page.locator("#outline [aria-current]")).to_contain_text("60")


GROW = """() => {
  const events = document.querySelector("#events");
  document.documentElement.style.overflowAnchor = "none";  // as browsers without it do
  const late = document.createElement("p");
  late.style.height = "1500px";
  events.prepend(late);
}"""


def the_place_stays_until_the_reader_moves(page: Page) -> None:
    """What is drawn late above a place that a link named does not push it away; once the reader moved, it may."""
    page.evaluate(GROW)
    expect(page.locator("#e180")).to_be_in_viewport()
    page.evaluate("scrollBy({ top: -50, behavior: 'instant' })")
    page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    page.evaluate(GROW)
    expect(page.locator("#e180")).not_to_be_in_viewport()
    page.goto(page.url.split("#")[0])
    page.goto(f"{page.url}#e180")
    expect(page.locator("#e180")).to_be_in_viewport()


def keys_lead_from_round_to_round(page: Page) -> None:
    page.keyboard.press("j")
    expect(page.locator("#outline [aria-current]")).to_contain_text("61")
    page.keyboard.press("k")
    expect(page.locator("#outline [aria-current]")).to_contain_text("60")


def tabs_keep_the_way_back(page: Page, address: str) -> None:
    page.keyboard.press("4")
    page.wait_for_url(f"{address}?tab=activations")
    expect(page.locator("svg.plot")).to_be_visible()
    expect(page.locator("#tabs [aria-current]")).to_have_text("Activations")
    page.locator("svg.plot [tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("svg.plot [tabindex='0']")).to_be_focused()
    expect(page.locator("#plot-card img")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#plot-card")).to_be_hidden()
    page.get_by_label("Exemplars").uncheck()
    expect(page.locator("svg.plot a.exemplar").first).to_be_hidden()
    page.go_back()
    expect(page.locator("#tabs [aria-current]")).to_have_text("Transcript")
    expect(page.locator("#e179")).to_be_attached()
    page.go_forward()
    expect(page.locator("svg.plot")).to_be_visible()


def gaps_fill_and_nothing_moves(page: Page, address: str, run: Run) -> None:
    page.goto(f"{address}#end")
    expect(page.locator("#end")).to_be_in_viewport()
    gap = page.locator(".gap")
    while gap.count():
        before = gap.get_attribute("data-before")
        reader = page.locator(f".event[data-seq='{before}']")
        reader.scroll_into_view_if_needed()
        expect(page.locator(f".gap[data-before='{before}']")).to_have_count(0)
        expect(reader).to_be_in_viewport()
    expect(page.locator("#events > .event")).to_have_count(run.last_seq - run.experiment_count)
