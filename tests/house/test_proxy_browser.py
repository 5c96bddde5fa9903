"""The real program below a path of another site's host, behind a proxy that removes the path and one that keeps it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect

from tests.support.browser import needs_chromium, new_page, open_browser
from tests.support.installation import Installation, installed
from tests.support.proxy import Proxy, behind_path

pytestmark = [pytest.mark.more, pytest.mark.timeout(300), needs_chromium]

PREFIX = "/maia"
PASSWORD = "correct-horse-battery-9"
ROWS = """
from django.contrib.auth.models import User
from experiments.core.notifications import notify_person
from tests.support.builders import make_run
owner = User.objects.get()
run = make_run(owner)
notify_person(owner, "run", "Look at it", run.get_absolute_url())
"""


@pytest.fixture(scope="module")
def site(quick_state: Path) -> Iterator[Installation]:
    """An installation below a path, with a run and a notification of it."""
    with installed(quick_state, "--no-example", MAIA_PREFIX=PREFIX) as site:
        site.link()
        site.manage("shell", "--command", ROWS)
        yield site


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(params=[True, False], ids=["removed", "kept"])
def proxy(request: pytest.FixtureRequest, site: Installation) -> Iterator[Proxy]:
    """A proxy of which nothing is asked that lies outside the path."""
    with behind_path(site.port, PREFIX, removes=request.param) as proxy:
        yield proxy
        assert proxy.strays == []


@pytest.fixture
def page(site: Installation, proxy: Proxy, browser: Browser) -> Iterator[Page]:
    """A page of somebody who signed in through the proxy, whose console stays free of errors."""
    errors: list[str] = []
    page = new_page(browser, errors=errors)
    token = site.manage("invite", "--role", "researcher").split("/join/")[1].split()[0]
    join(page, f"{proxy.url}/join/{token}", name_behind(proxy))
    yield page
    page.context.close()
    assert errors == []


def name_behind(proxy: Proxy) -> str:
    """The user name of whoever joined through this proxy: each proxy has its own port."""
    return f"member{urlsplit(proxy.url).port}"


def join(page: Page, address: str, name: str) -> None:
    """Become a member by an invitation."""
    page.goto(address)
    page.get_by_label("User name").fill(name)
    for field in page.locator("input[type=password]").all():
        field.fill(PASSWORD)
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()


def links(page: Page, place: str = "") -> list[str]:
    """Where the links of a part of the page lead, as they are written."""
    read = "links => links.map(link => link.getAttribute('href')).filter(href => !href.startsWith('#'))"
    return list(page.locator(f"{place} a[href]").evaluate_all(read))


def test_pages_have_their_styles_and_cookies_below_the_path(page: Page, proxy: Proxy) -> None:
    assert page.url == f"{proxy.url}/"
    page.wait_for_load_state()  # its heading stands there before the last style sheet came
    assert page.evaluate("[...document.styleSheets].filter((each) => each.cssRules.length).length") >= 1
    assert {cookie["path"] for cookie in page.context.cookies()} == {PREFIX}
    assert len(links(page, ".sidebar")) > 8
    assert [link for link in links(page) if not link.startswith(f"{PREFIX}/")] == []
    expect(page.locator(".sidebar a[aria-current=page]").first).to_have_attribute("href", f"{PREFIX}/")


def test_a_run_has_its_sockets(page: Page, proxy: Proxy) -> None:
    heard: set[str] = set()

    def note(socket: WebSocket) -> None:
        socket.on("framereceived", lambda _: heard.add(socket.url.partition("?")[0]))

    page.on("websocket", note)
    page.goto(f"{proxy.url}/runs/1/")
    base = proxy.url.replace("http:", "ws:")
    end = time.monotonic() + 30
    while len(heard) < 2 and time.monotonic() < end:
        page.wait_for_timeout(100)
    assert heard == {f"{base}/ws/live/", f"{base}/ws/runs/1/"}
    assert links(page, ".breadcrumbs")[:2] == [f"{PREFIX}/", f"{PREFIX}/runs/"]


def test_a_share_link_and_signing_in_stay_below_the_path(page: Page, proxy: Proxy, browser: Browser) -> None:
    page.goto(f"{proxy.url}/runs/1/shares/")
    page.get_by_role("button", name="Create link").click()
    link = page.locator(".new-secret pre").inner_text()
    assert link.startswith(f"{proxy.url}/shared/")
    stranger = new_page(browser)
    stranger.goto(link)
    expect(stranger.get_by_role("heading", level=1)).to_contain_text("What does it respond to?")
    stranger.goto(f"{proxy.url}/runs/")
    assert stranger.url == f"{proxy.url}/sign-in/?next={PREFIX}/runs/"
    stranger.get_by_label("User name").fill(name_behind(proxy))
    stranger.get_by_label("Password").fill(PASSWORD)
    stranger.get_by_role("button", name="Sign in", exact=True).click()
    expect(stranger.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    assert stranger.url == f"{proxy.url}/runs/"
    stranger.context.close()


def test_an_error_page_and_the_api_lead_back_below_the_path(page: Page, proxy: Proxy) -> None:
    answer = page.request.get(f"{proxy.url}/nowhere/")
    assert answer.status == 404
    found = re.findall(r'(?:href|src)="([^"]*)"', answer.text())
    assert len(found) > 3
    assert [each for each in found if not each.startswith(f"{PREFIX}/")] == []
    assert page.request.get(f"{proxy.url}/api/v1/openapi.json").json()["servers"] == [{"url": PREFIX}]
    assert page.request.get(f"{proxy.url}/api/v1/runs/9").json()["type"].startswith(f"{PREFIX}/api/v1/docs#")
    assert page.request.get(f"{proxy.url}/healthz").status == 200
    page.goto(f"{proxy.url}/api/v1/docs")
    expect(page.get_by_role("heading", name="API", exact=True)).to_be_visible()
    expect(page.locator(".page-head .mono")).to_have_text(f"{proxy.url}/api/v1/")


def test_a_notification_leads_to_its_page(page: Page, proxy: Proxy, site: Installation) -> None:
    newest = "UPDATE experiments_notification SET user_id = (SELECT MAX(id) FROM auth_user), read = NULL"
    site.change(newest)
    urls = [url for (url,) in site.rows("SELECT url FROM experiments_notification")]
    assert "/runs/1/" in urls
    assert [url for url in urls if not url.startswith("/runs/1/")] == []  # the run's end may be told by now
    page.goto(f"{proxy.url}/notifications/")
    page.get_by_text("Look at it").click()
    page.wait_for_url(f"{proxy.url}/runs/1/**")
