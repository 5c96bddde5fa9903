"""A real browser for tests: a Chromium of the machine's, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

T = TypeVar("T")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
DEADLINE = 60_000
"""Milliseconds in which a page has to show what is expected of it: enough for a machine ten times slower."""
LEFT_ON_ITS_WAY = ("htmx:afterRequest", "htmx:sendError", "htmx:sendAbort")
"""What htmx logs as an error when a page is left while a part of it is on its way."""
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="No Chromium found: `apt-get install chromium` brings it.")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser for the length of a block, in which this thread must not touch the database: see `aside`."""
    with sync_playwright() as playwright:
        expect.set_options(timeout=DEADLINE)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=DEADLINE)
        yield browser
        browser.close()


def new_page(
    browser: Browser, url: str = "", client: Client | None = None, errors: list[str] | None = None, **options: Any
) -> Page:
    """A page in a session of its own, signed in at `url` as the client is. What its console calls an error is added
    to `errors`, violations of the Content-Security-Policy included."""
    context = browser.new_context(**options)
    context.set_default_timeout(DEADLINE)
    if client is not None:
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": url}])
    page = context.new_page()
    if errors is not None:
        page.on("console", lambda message: errors.append(message.text) if _is_error(message) else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
    return page


def _is_error(message: ConsoleMessage) -> bool:
    """A part of a page that is left on its way is none; what a server refuses is one."""
    return message.type == "error" and not message.text.startswith(LEFT_ON_ITS_WAY)


@contextmanager
def open_page(
    url: str = "", client: Client | None = None, errors: list[str] | None = None, **options: Any
) -> Iterator[Page]:
    """The same, in a browser of its own."""
    with open_browser() as browser:
        yield new_page(browser, url, client, errors, **options)


def overhang(page: Page) -> int:
    """By how many pixels the page is wider than the window, once its styles are there: words come before them."""
    page.wait_for_load_state("load")
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def assert_fits(page: Page, *widths: int) -> None:
    """Nothing of the page is beyond the right edge of a window of any of the widths."""
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        assert overhang(page) == 0, width


def aside(work: Callable[[], T]) -> T:
    """Do what touches the database in a thread: the browser's own has an event loop."""

    def run() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


def wait_for_end(page: Page, status: str) -> None:
    expect(page.locator("#run")).to_have_attribute("data-status", status, timeout=120_000)
