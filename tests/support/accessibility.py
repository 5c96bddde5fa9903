"""What axe-core has against a page."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

RUN = "axe.run(document, { resultTypes: ['violations'] })"


def violations(page: Page) -> list[str]:
    """A line for each rule that the page breaks: the rule, how often, the first place and what is wrong there. The
    page's context has to be made with `bypass_csp=True`."""
    page.evaluate(AXE_SCRIPT)
    return [_in_words(found) for found in page.evaluate(RUN)["violations"]]


def _in_words(found: dict[str, Any]) -> str:
    first = found["nodes"][0]
    why = " ".join(first.get("failureSummary", "").split())
    return f"{found['id']} ({len(found['nodes'])}): {first['html'][:160]} | {why[-200:]}"
