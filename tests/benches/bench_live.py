"""What a person waits for in the browser: the first word after the click, and an experiment's images after its end."""

from __future__ import annotations

import re
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import needs_chromium, open_page
from tests.support.installation import Installation, installed

UNITS = (3, 12, 21, 34, 47)
WATCH = """
window.seen = [];
document.addEventListener("load", ({ target }) => {
  const event = target.closest?.(".experiment");
  if (event) window.seen.push([Number(event.dataset.seq), Date.now()]);
}, true);
"""
FIRST_WORD = "document.getElementById('draft-words')?.textContent.trim() || !!document.querySelector('.experiment')"


@pytest.mark.bench
@needs_chromium
def test_what_a_person_waits_for(quick_state: Path) -> None:
    words, images = [], []
    with installed(quick_state, "--no-example", MAIA_WORDS_PER_SECOND="60") as site, open_page() as page:
        page.add_init_script(WATCH)
        page.goto(site.link())
        page.get_by_role("button", name="Sign in").click()
        for unit in UNITS:
            words.append(first_word(page, site, unit))
            expect(page.locator("#run")).to_have_attribute("data-status", "concluded", timeout=180_000)
            images += image_delays(page, site)
    print(f"\nIn a real browser, {len(UNITS)} runs of the scripted scientist")
    print(f"{'figure':52}{'median':>12}{'slowest':>12}")
    for name, values in (
        ("click to first word of the reply", words),
        ("end of an experiment to its first image", images),
    ):
        print(f"{name:52}{statistics.median(values) * 1000:9.0f} ms{max(values) * 1000:9.0f} ms")


def first_word(page: Page, site: Installation, unit: int) -> float:
    """Seconds from the click on "Start run" to the first word of the first reply."""
    page.goto(f"{site.url}/query/")
    page.get_by_label("Layer").select_option("layer4")
    page.get_by_label("Units", exact=True).fill(str(unit))
    expect(page.locator("#preview img").first).to_be_visible(timeout=60_000)
    began = time.perf_counter()
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\d+/"))
    site.until(lambda: page.evaluate(FIRST_WORD), "no word came")  # evaluated from outside: the policy forbids eval
    return time.perf_counter() - began


def image_delays(page: Page, site: Installation) -> list[float]:
    """For each experiment of the run on the page: seconds from its recorded end to its first image on the screen."""
    run = int(page.url.rstrip("/").split("/")[-1])
    seen: dict[int, float] = {}
    records: list[Any] = page.evaluate("window.seen")
    for seq, moment in records:
        seen[seq] = min(moment / 1000, seen.get(seq, float("inf")))
    query = "SELECT seq, time FROM experiments_event WHERE run_id = ? AND kind = 'result'"
    ends = {seq: datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() for seq, text in site.rows(query, run)}
    return [seen[seq] - end for seq, end in ends.items() if seq in seen]
