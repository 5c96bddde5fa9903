"""A person writes rounds in a real browser, against `manage.py up`: the editor, its images, a killed worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import needs_chromium, open_page, wait_for_end
from tests.support.installation import Installation, installed

pytestmark = [
    pytest.mark.timeout(480),
    needs_chromium,
]
PROGRAM = """def run_experiment(system, tools):
prompts = ["a red ball on grass", "a blue ball on grass"]
activations, images = system.neuron(tools.text2image(prompts))
tools.log_experiment(activations, images, prompts, "colour")"""
"""As one types it: the editor indents."""
LONG_AGO = "2000-01-01 00:00:00"


@pytest.fixture(scope="module")
def site(quick_state: Path) -> Iterator[Installation]:
    with installed(quick_state, "--no-example") as installation:
        installation.link()
        yield installation


@pytest.fixture(scope="module")
def page(site: Installation) -> Iterator[Page]:
    """A signed-in page whose console stays free of errors."""
    errors: list[str] = []
    with open_page(errors=errors) as page:
        page.goto(site.link())
        page.get_by_role("button", name="Sign in").click()
        yield page
    assert errors == []


def ask(page: Page, site: Installation) -> int:
    known = "SELECT 1 FROM experiments_backbone WHERE key = 'person' AND available"
    site.until(lambda: site.rows(known), "the worker did not name its backbones")
    page.goto(f"{site.url}/query/?unit=12")
    page.get_by_role("radio", name="Manual (human)").check()
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*/")
    return int(page.url.rstrip("/").split("/")[-1])


def test_a_person_writes_a_program_and_sees_its_images(site: Installation, page: Page) -> None:
    ask(page, site)
    program = page.get_by_label("Program")
    expect(program).to_be_visible()
    page.get_by_label("Hypothesis", exact=True).fill("It responds to red balls")
    program.click()
    for line in PROGRAM.splitlines():
        page.keyboard.type(f"{line}\n")
    expect(program).to_have_value(PROGRAM.replace("\n", "\n    ") + "\n    ")
    expect(page.locator(".code-edit .k", has_text="def")).to_be_visible()
    page.keyboard.press("Shift+Tab")
    page.keyboard.type("x =")
    expect(page.locator("#kept")).to_contain_text("Draft kept")
    page.reload()
    expect(program).to_have_value(PROGRAM.replace("\n", "\n    ") + "\nx =")

    program.press("Control+Enter")
    expect(page.get_by_role("heading", name="Experiment 1 failed in line 5")).to_be_visible()
    expect(page.locator(".code-edit .layer .wrong")).to_have_text("x =\n")
    program.fill(PROGRAM.replace("\n", "\n    "))
    expect(page.locator(".code-edit .wrong")).to_have_count(0)
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
    run = ask(page, site)
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
    expect(page.get_by_role("heading", name="Round 2")).to_be_visible(timeout=30_000)
