"""Two browsers: from what one person does to the other seeing it. The goal is one second."""

from __future__ import annotations

import statistics

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from tests.support.browser import needs_chromium, new_page, open_browser
from tests.support.long_run import long_run
from tests.support.people import member, signed_in
from tests.support.served import served

TIMES = 12
WATCH = """(selector) => {
  const before = document.querySelector(selector).textContent;
  window.seen = new Promise((done) => {
    const look = new MutationObserver(() => {
      const now = document.querySelector(selector)?.textContent;
      if (now === undefined || now === before) return;
      look.disconnect();
      done(Date.now());
    });
    look.observe(document.body, { childList: true, subtree: true, characterData: true });
  });
}"""
CLICK = "() => { const at = Date.now(); document.querySelector('.comment-form.new button').click(); return at; }"


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
@needs_chromium
def test_what_one_does_the_other_sees(redis_url: str, owner: User) -> None:
    run = long_run(owner, 20, 4)
    clients = [signed_in(person) for person in (owner, member("colleague", "RESEARCHER"))]
    with open_browser() as browser, served() as url:
        one, other = (new_page(browser, url, client) for client in clients)
        one.goto(f"{url}/runs/{run.pk}/?tab=comments")
        other.goto(f"{url}/runs/{run.pk}/?tab=comments")
        other.wait_for_selector("#bell[hx-get*=after]")
        other.wait_for_timeout(2_000)
        told = [seconds(one, other, f"Look {number}, @colleague", "#bell .count") for number in range(TIMES)]
        shown = [seconds(one, other, f"Number {number}.", "#talks") for number in range(TIMES)]
    print(f"\nTwo browsers, {TIMES} comments each")
    for name, values in (("a mention, until the other's bell counts it", told), ("a comment, until it stands", shown)):
        print(f"{name:52}{statistics.median(values) * 1000:9.0f} ms{max(values) * 1000:9.0f} ms")


def seconds(one: Page, other: Page, text: str, selector: str) -> float:
    """From the click to the change on the other's screen."""
    other.evaluate(WATCH, selector)
    one.locator(".comment-form.new textarea").fill(text)
    clicked = one.evaluate(CLICK)
    seen = other.evaluate("() => window.seen")
    one.wait_for_timeout(700)
    return float(seen - clicked) / 1000
