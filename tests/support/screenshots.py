"""The README's pictures, taken of a filled demo: `make screenshots`, or `python -m tests.support.screenshots STATE`."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, StorageState, ViewportSize

from tests import ROOT
from tests.support.browser import open_browser
from tests.support.installation import Installation, installed

Theme = Literal["light", "dark"]
SIZE = ViewportSize(width=1440, height=900)
COLOURS = 200
"""Of a picture: pages have few, and a file with a palette is a third as large."""
BEST = (
    "SELECT run.id FROM experiments_run run JOIN experiments_labelcheck found ON found.id = run.label_check_id "
    "WHERE run.task = 'describe' AND run.system_kind = 'unit' ORDER BY found.pearson DESC, run.id"
)
TWO = "SELECT id, (SELECT min(id) FROM experiments_run b WHERE b.unit = a.unit AND b.layer = a.layer AND b.id < a.id) "
TWO += "AS first FROM experiments_run a WHERE a.seed = 7 AND first IS NOT NULL"


def take_all(state: Path) -> None:
    """Every picture anew, into static/."""
    if not (state / "demo.json").exists():
        sys.exit(f"{state} holds no demo: `make demo` fills one.")
    with installed(state, "--no-example", MAIA_DATASET_IMAGES="0") as demo, open_browser() as browser:
        session = _sign_in(browser, demo)
        for name, theme, path in _list_pictures(demo):
            context = browser.new_context(viewport=SIZE, color_scheme=theme, storage_state=session)
            page = context.new_page()
            page.goto(f"{demo.url}{path}")
            page.wait_for_load_state("networkidle")
            _save(page.screenshot(), ROOT / "static" / name)
            context.close()


def _list_pictures(demo: Installation) -> list[tuple[str, Theme, str]]:
    """File, theme and address of each."""
    best = demo.rows(BEST)[0][0]
    again, first = demo.rows(TWO)[0]
    return [
        ("readme.png", "light", f"/runs/{best}/"),
        ("readme-dark.png", "dark", f"/runs/{best}/"),
        ("readme-compare.png", "light", f"/compare/?run={first}&run={again}"),
    ]


def _sign_in(browser: Browser, demo: Installation) -> StorageState:
    """The cookies of who opened the printed link, which is good once."""
    page = browser.new_page()
    page.goto(demo.link())
    page.get_by_role("button").first.click()
    page.wait_for_url(f"{demo.url}/")
    return page.context.storage_state()


def _save(picture: bytes, path: Path) -> None:
    small = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    named = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("MAIA_STATE", str(ROOT / "var/demo"))
    take_all(Path(named).resolve())
