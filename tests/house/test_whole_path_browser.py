"""Whole paths in a real browser, against one `manage.py up`: watching a run, and writing its rounds oneself.

Any console error fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.browser import LEFT_ON_ITS_WAY, needs_chromium, open_browser, wait_for_end
from tests.support.installation import Installation, installed

pytestmark = [
    pytest.mark.timeout(480),
    needs_chromium,
]


FINE = ("ERR_INTERNET_DISCONNECTED", *LEFT_ON_ITS_WAY)
"""What a console may say: a link that a test cut, and a question that ended with the part of the page that asked it."""
PROGRAM = """def run_experiment(system, tools):
prompts = ["a red ball on grass", "a blue ball on grass"]
activations, images = system.neuron(tools.text2image(prompts))
tools.log_experiment(activations, images, prompts, "colour")"""
"""As one types it: the editor indents."""
LONG_AGO = "2000-01-01 00:00:00"


@pytest.fixture(scope="module")
def site(quick_state: Path) -> Iterator[Installation]:
    """An installation whose scripted scientist writes slowly enough to be watched."""
    with installed(quick_state, "--no-example", MAIA_WORDS_PER_SECOND="120") as installation:
        installation.link()
        yield installation


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def session(site: Installation, browser: Browser) -> Iterator[BrowserContext]:
    """A browser that has signed in with the one-time link."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.link())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    page.close()
    yield context
    context.close()


@pytest.fixture
def page(session: BrowserContext) -> Iterator[Page]:
    """A page whose console stays free of errors, those of the Content-Security-Policy included."""
    page = session.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert not [error for error in errors if not any(fine in error for fine in FINE)], errors


def ask(page: Page, site: Installation, unit: int) -> int:
    """Ask about a unit, as a person does; the number of the run."""
    page.goto(f"{site.url}/")
    page.get_by_role("link", name="New run").first.click()
    page.get_by_label("Layer").select_option("layer4")
    page.get_by_label("Units", exact=True).fill(str(unit))
    expect(page.locator("#preview img").first).to_be_visible()
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\d+/"))
    return int(page.url.rstrip("/").split("/")[-1])


def ask_oneself(page: Page, site: Installation) -> int:
    """Ask about a unit whose rounds a person writes; the number of the run."""
    known = "SELECT 1 FROM experiments_backbone WHERE key = 'person' AND available"
    site.until(lambda: site.rows(known), "the worker did not name its backbones")
    page.goto(f"{site.url}/query/?unit=12")
    page.get_by_role("radio", name="Manual (human)").check()
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*/")
    return int(page.url.rstrip("/").split("/")[-1])


def events(site: Installation, run: int) -> list[int]:
    return [seq for (seq,) in site.rows("SELECT seq FROM experiments_event WHERE run_id = ? ORDER BY seq", run)]


def shown(page: Page) -> set[str]:
    """The anchors of the events on the page."""
    found = page.evaluate("[...document.querySelectorAll('.event, .event > [id]')].map(each => each.id)")
    return set(found)


def test_a_person_asks_watches_reloads_and_reads_the_conclusion(site: Installation, page: Page) -> None:
    run = ask(page, site, 12)
    expect(page.locator("#connection")).to_contain_text("Connected")
    expect(page.locator("#draft-words")).not_to_be_empty()
    expect(page.locator(".experiment").first).to_be_visible()
    grown = len(shown(page))
    page.reload()
    assert len(shown(page)) >= grown
    wait_for_end(page, "concluded")
    pictures = page.locator(".experiment img")
    expect(pictures.first).to_be_visible()
    expect(pictures.first).not_to_have_js_property("naturalWidth", 0)
    label = site.rows("SELECT text FROM experiments_label WHERE run_id = ? ORDER BY position", run)
    for (text,) in label:
        expect(page.locator("#side")).to_contain_text(text)
    live = shown(page)
    page.reload()
    assert shown(page) == live, "the page drawn at once differs from the one that grew"


def test_a_viewer_who_lost_the_network_misses_nothing(site: Installation, page: Page) -> None:
    run = ask(page, site, 3)
    expect(page.locator(".experiment").first).to_be_visible()
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_contain_text(re.compile("Offline|Reconnecting"))
    before = len(events(site, run))
    site.until(lambda: len(events(site, run)) > before, "the run did not go on")
    page.context.set_offline(False)
    wait_for_end(page, "concluded")
    first = shown(page)
    page.reload()
    assert shown(page) == first


def test_a_run_stops_when_a_person_says_so(site: Installation, page: Page) -> None:
    run = ask(page, site, 5)
    expect(page.locator("#draft-words")).not_to_be_empty()
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page, "cancelled")
    assert site.rows("SELECT status FROM experiments_run WHERE id = ?", run) == [("cancelled",)]
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()


def test_it_says_what_is_wrong_with_a_query_and_keeps_what_was_typed(site: Installation, page: Page) -> None:
    page.goto(f"{site.url}/query/")
    page.get_by_role("textbox", name="Question").fill("Is it red?")
    page.get_by_label("Units", exact=True).fill("99999")
    expect(page.locator("#unit-note")).to_contain_text("to")
    page.get_by_role("button", name="Start run").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("textbox", name="Question")).to_have_value("Is it red?")


def test_a_person_writes_a_program_and_sees_its_images(site: Installation, page: Page) -> None:
    ask_oneself(page, site)
    program = page.get_by_label("Program")
    expect(program).to_be_visible()
    page.get_by_label("Hypothesis", exact=True).fill("It responds to red balls")
    program.click()
    for line in PROGRAM.splitlines():
        page.keyboard.type(f"{line}\n")
    expect(program).to_have_value(PROGRAM.replace("\n", "\n    ") + "\n    ")
    expect(page.locator(".code-edit .k", has_text="def")).to_be_visible()
    page.keyboard.press("Shift+Tab")
    # That a draft was kept is said of an earlier one too, where typing takes long
    with page.expect_response(lambda each: "draft" in each.url and "x+%3D" in (each.request.post_data or "")):
        page.keyboard.type("x =")
    expect(page.locator("#kept")).to_contain_text("Draft kept")
    page.reload()
    expect(program).to_have_value(PROGRAM.replace("\n", "\n    ") + "\nx =")

    program.press("Control+Enter")
    expect(page.get_by_role("heading", name="Experiment 1 failed in line 5")).to_be_visible()
    expect(page.locator(".code-edit .layer .error-line")).to_have_text("x =\n")
    program.fill(PROGRAM.replace("\n", "\n    "))
    expect(page.locator(".code-edit .error-line")).to_have_count(0)
    program.press("Escape")
    page.keyboard.press("Enter")
    pictures = page.locator("#experiment-2 img")
    expect(pictures.first).to_be_visible()
    expect(pictures.first).not_to_have_js_property("naturalWidth", 0)
    expect(page.get_by_label("Hypothesis 1")).to_have_value("It responds to red balls")

    page.get_by_label("Conclusion").check()
    page.get_by_label("Labels, one a line").fill("red balls")
    page.get_by_role("button", name="Conclude").click()
    wait_for_end(page, "concluded")
    expect(page.locator("#end")).to_be_visible()
    expect(page.locator("#reply")).to_be_empty()


@pytest.mark.more
def test_a_worker_that_is_killed_in_mid_program_loses_nothing_and_runs_nothing_twice(
    site: Installation, page: Page
) -> None:
    run = ask_oneself(page, site)
    program = page.get_by_label("Program")
    expect(program).to_be_visible()
    program.fill("import time\ntime.sleep(3)\nprint('done')")
    program.press("Control+Enter")

    def kinds() -> list[str]:
        query = "SELECT kind FROM experiments_event WHERE run_id = ? ORDER BY seq"
        return [kind for (kind,) in site.rows(query, run)]

    site.until(lambda: "experiment" in kinds(), "the program did not start")
    site.child("celery", "worker").kill()
    # The lease would lapse in 30 s; the test does not wait for it.
    site.change("UPDATE experiments_run SET lease_expires = ?, due = ?", LONG_AGO, LONG_AGO)
    site.until(lambda: kinds()[-1] == "waiting_for_person" and "result" in kinds(), "the run did not go on", 300)
    assert [kind for kind in kinds() if kind in {"reply", "experiment", "result"}] == ["reply", "experiment", "result"]
    assert site.rows("SELECT status FROM experiments_experiment WHERE run_id = ?", run) == [("ok",)]
    expect(page.get_by_role("heading", name="Round 2")).to_be_visible(timeout=60_000)
