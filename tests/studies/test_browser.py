"""Studies in a browser: ticked runs become one; its folder is served by any web server, and opens from a disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from experiments.models import Study
from experiments.studies.folder import FolderSink, write_study
from tests.support.accessibility import violations
from tests.support.browser import assert_fits, needs_chromium, new_page, open_browser, open_page
from tests.support.bundles import full_run
from tests.support.people import signed_in
from tests.support.served import served
from tests.support.studies import link_study

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),  # WhiteNoise reads its files at once
    needs_chromium,
]
SIZES = """() => Promise.all([...document.images].map(each => {
  each.loading = "eager";
  return each.decode().then(() => each.naturalWidth, () => 0);
}))"""
"""How wide each picture of a page is; 0 for one that does not load."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base
        return


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """A folder under an address of this machine, as `python -m http.server` serves it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_a_folder_is_whole_wherever_it_lies(hostile: Study, tmp_path: Path, scheme: str) -> None:
    write_study(hostile, FolderSink(tmp_path / "deep" / "study"), lambda *_: None)
    run = hostile.items.get(number=None).run_id
    asked, said = list[str](), list[str]()
    with serve(tmp_path) as server, open_page(bypass_csp=False) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        base = f"{server}/deep/study/" if scheme == "http" else f"{(tmp_path / 'deep' / 'study').as_uri()}/"
        page.goto(f"{base}index.html")
        sizes = page.evaluate(SIZES)
        assert_fits(page, 1440, 390)
        page.get_by_role("link", name=f"Whole transcript of run {run}").click()
        expect(page.get_by_role("link", name="</title>")).to_be_visible()
        sizes += page.evaluate(SIZES)
        assert_fits(page, 1440, 390)
    assert len(sizes) > 8
    assert 0 not in sizes
    assert [each for each in asked if not each.startswith(base)] == []
    assert said == []


def test_a_folder_and_a_link_break_no_rule_of_axe(redis_url: str, study: Study, owner: User, tmp_path: Path) -> None:
    write_study(study, FolderSink(tmp_path), lambda *_: None)
    run, at, client = study.items.get(number=None).run_id, link_study(study), signed_in(owner)
    with open_browser() as browser, served() as url:
        page = new_page(browser, url, client, bypass_csp=True)
        inside = [f"{url}{study.get_absolute_url()}", f"{url}{study.get_absolute_url()}edit/", f"{url}/studies/"]
        outside = [f"{url}{at.path}", f"{url}{at.path}runs/{run}/"]
        files = [(tmp_path / name).as_uri() for name in ("index.html", f"runs/{run}.html")]
        found = {address: _look(page, address) for address in (*inside, *outside, *files)}
        browser.close()
    assert {address: broken for address, broken in found.items() if broken} == {}


def _look(page: Page, address: str) -> list[str]:
    page.goto(address, wait_until="load")
    return violations(page)


def test_ticked_runs_become_a_study(redis_url: str, owner: User) -> None:
    for words in ("first", "second"):
        full_run(owner, words)
    client, errors = signed_in(owner), list[str]()
    with open_browser() as browser, served() as url:
        page = new_page(browser, url, client, errors)
        page.goto(f"{url}/runs/")
        for box in page.locator("input[name=run]").all():
            box.check()
        page.get_by_role("button", name="Add to study").click()
        page.get_by_label("New study").fill("Both")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Both")
        expect(page.locator(".study-part")).to_have_count(2)
        page.get_by_role("link", name="Edit", exact=True).click()
        page.get_by_label("Caption of item 2").fill("The **other** one.")
        page.get_by_label("Place of item 1").fill("3")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".study-part").first.locator(".study-caption")).to_have_text("The other one.")
        browser.close()
    assert errors == []
