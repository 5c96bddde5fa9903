"""One style sheet and one script a page: what is in them, how they are kept, and that they do what the parts did."""

from __future__ import annotations

import gzip
import re
from html import unescape
from pathlib import Path

import brotli
import pytest
from django.contrib.auth.models import User
from django.template import Context, Template
from django.test import Client
from playwright.sync_api import expect
from rcssmin import cssmin
from rjsmin import jsmin

from experiments.display import bundles
from experiments.display.script_modules import Unjoinable, join_scripts
from tests import ROOT
from tests.support.browser import aside, needs_chromium, open_page
from tests.support.builders import make_run

STATIC = ROOT / "static"
FILES = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.suffix in {".css", ".js"})
HEAD = re.compile(r"<head>.*?</head>", re.DOTALL)


def links(page: str) -> list[str]:
    """Addresses of styles and scripts in the head, as the browser reads them."""
    head = HEAD.findall(page)[0]
    found = re.findall(r'<link rel="stylesheet" href="([^"]+)"|<script[^>]* src="([^"]+)"', head)
    return [unescape(style or script) for style, script in found]


@pytest.mark.parametrize("name", FILES)
def test_every_file_can_be_part_of_a_bundle(name: str) -> None:
    made = bundles.make((name,), name.rpartition(".")[2])
    assert made.plain
    assert gzip.decompress(made.gzip) == brotli.decompress(made.br) == made.plain
    assert made.plain.count(b"{") == made.plain.count(b"}"), "a brace left open would swallow what follows"


@pytest.mark.django_db
def test_a_page_asks_for_one_style_sheet_and_one_script_beside_that_of_the_theme(as_owner: Client, owner: User) -> None:
    for address in ("/", "/runs/", f"/runs/{make_run(owner).pk}/", "/settings/you/", "/sign-in/"):
        asked = links(as_owner.get(address, follow=True).content.decode())
        styles = [link for link in asked if ".css?" in link]
        scripts = [link for link in asked if ".js?" in link]
        assert (len(styles), [link for link in asked if "/bundles/" not in link]) == (1, []), address
        assert scripts[0].endswith("?js/display/theme.js"), address
        assert len(scripts) <= 2, address


@pytest.mark.django_db
def test_a_bundle_is_kept_for_good_and_comes_compressed_to_whoever_takes_it(as_owner: Client) -> None:
    style, theme, script = sorted(links(as_owner.get("/runs/").content.decode()), key=lambda link: ".js" in link)
    for link in (style, theme, script):
        zipped = Client().get(link, headers={"Accept-Encoding": "gzip"})
        packed = Client().get(link, headers={"Accept-Encoding": "gzip, br"})
        plain = Client().get(link)
        assert packed["Cache-Control"] == plain["Cache-Control"] == "public, max-age=31536000, immutable"
        assert (zipped["Content-Encoding"], packed["Content-Encoding"]) == ("gzip", "br")
        assert packed["Vary"] == plain["Vary"] == "Accept-Encoding"
        assert gzip.decompress(zipped.content) == brotli.decompress(packed.content) == plain.content
        assert not packed.cookies
    page_of_runs = Client().get(style).content.decode()
    assert cssmin((STATIC / "css/runs/index.css").read_text()) in page_of_runs
    assert cssmin((STATIC / "css/units/pages.css").read_text()) not in page_of_runs, "of another page"


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".js")])
def test_what_is_written_between_backticks_comes_through_as_it_is(name: str) -> None:
    """Words that a script shows, and addresses that it makes, have spaces that count."""
    source = re.sub(r"//.*|/\*.*?\*/", "", (STATIC / name).read_text())
    written = re.findall(r"`[^`\n]*\$\{[^`\n]*`", source)
    assert [each for each in written if each not in jsmin(source)] == []


@pytest.mark.django_db
def test_a_page_of_before_an_upgrade_gets_what_there_is_and_keeps_it_not(as_owner: Client) -> None:
    link = links(as_owner.get("/").content.decode())[0]
    older = re.sub(r"bundles/\w+", "bundles/" + "0" * 16, link)
    answer = Client().get(older)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-cache")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "css/display/nowhere.css",
        "js/display/main.js",
        "../maia_web/settings.css",
        "css/../css/display/base.css",
        "/etc/a.css",
        "css/display/base.css," * 50,
        "%00.css",
    ],
)
def test_only_static_files_can_be_asked_for(query: str) -> None:
    assert Client().get(f"/bundles/{'0' * 16}.css?{query}").status_code == 404


def test_while_pages_are_worked_on_the_parts_come_singly(settings) -> None:
    link = '<link rel="stylesheet" href="{% static \'css/display/base.css\' %}">'
    source = f"{{% load static frame %}}{{% bundle %}}{link}{{% endbundle %}}"
    settings.DEBUG = True
    assert "/static/css/display/base.css" in Template(source).render(Context())


def test_names_cross_from_module_to_module(tmp_path: Path, settings) -> None:
    written(
        tmp_path,
        settings,
        {
            "js/a.js": 'import { two as second, Three } from "./deep/b.js";\nimport "./c.js";\nsecond(Three);\n',
            "js/deep/b.js": 'import "../c.js";\nfunction inner() {}\nexport class Three {}\nexport { inner as two };\n',
            "js/c.js": "window.order = [];\n",
        },
    )
    text = join_scripts(["js/a.js"])
    assert text.index("window.order") < text.index("class Three") < text.index("second(Three)")
    assert text.count("window.order") == 1
    assert "Object.assign($deep_b, {Three: Three, two: inner});" in text
    assert "const {two: second, Three: Three} = $deep_b;" in text


@pytest.mark.parametrize(
    "line",
    [
        'import * as all from "./b.js";',
        'import b from "./b.js";',
        "export default 1;",
        "export let counter = 0;",
        'export { a } from "./b.js";',
        'const later = await import("./b.js");',
        'import "./a.js";',
    ],
)
def test_what_cannot_be_joined_is_refused_by_name(tmp_path: Path, settings, line: str) -> None:
    written(tmp_path, settings, {"js/a.js": f"{line}\n", "js/b.js": "export const a = 1;\n"})
    with pytest.raises(Unjoinable, match=r"js/a\.js"):
        join_scripts(["js/a.js"])


def written(folder: Path, settings, files: dict[str, str]) -> None:
    """These are the only static files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    settings.STATICFILES_DIRS = [folder]


@pytest.mark.django_db(transaction=True)
@needs_chromium
def test_a_module_that_breaks_takes_no_other_with_it_in_a_browser(
    live_server, as_owner: Client, owner: User, redis_url: str
) -> None:
    errors: list[str] = []
    with open_page(live_server.url, as_owner, errors) as page:
        page.add_init_script("delete window.ResizeObserver;")  # the run page watches the height of its head
        page.goto(f"{live_server.url}{make_run_aside(owner)}")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Shortcuts and words")).to_be_visible()
        assert any("ResizeObserver" in error for error in errors)


def make_run_aside(owner: User) -> str:
    return aside(lambda: make_run(owner).get_absolute_url())
