"""The frame: places, counts, breadcrumbs, what the palette and the keys start from, states that pages share."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client
from django.urls import path
from django.views.generic import TemplateView

from experiments.display import layout
from maia_web.urls import urlpatterns as known
from tests import ROOT
from tests.support.builders import make_run

pytestmark = pytest.mark.django_db
urlpatterns: list[object] = [
    *known,
    path("things/", TemplateView.as_view(template_name="404.html"), name="evaluations"),
    path("things/<path:what>/<int:number>/", TemplateView.as_view(template_name="404.html"), name="thing"),
    path("tidy-things/<str:what>", TemplateView.as_view(template_name="404.html"), name="tidy"),
]
"""Addresses of the site, and a few that stand for pages to come."""


@pytest.fixture
def more_pages(settings) -> None:
    settings.ROOT_URLCONF = __name__
    layout.address.cache_clear()


@pytest.fixture(autouse=True)
def forget_addresses() -> object:
    yield
    layout.address.cache_clear()


def page(client: Client, address: str = "/runs/") -> str:
    return client.get(address).content.decode()


def entries(text: str, which: str = "") -> list[str]:
    rail = text.partition('<nav class="sidebar"')[2].partition("</nav>")[0]
    return re.findall(rf'<li><a href="([^"]+)"{which}', rail)


def test_the_rail_names_the_places_there_are(as_owner: Client) -> None:
    text = page(as_owner)
    assert entries(text) == [place.url for place in layout.MENU if place.url]
    assert {"/", "/runs/", "/settings/"} <= set(entries(text))
    assert "" not in entries(text)


@pytest.mark.usefixtures("more_pages")
def test_an_entry_appears_with_its_page(as_owner: Client) -> None:
    assert "/things/" in entries(page(as_owner))


@pytest.mark.parametrize(
    ("address", "place"),
    [("/", "/"), ("/runs/", "/runs/"), ("/runs/{run}/", "/runs/"), ("/settings/workers/", "/settings/")],
)
def test_the_rail_says_where_one_is(as_owner: Client, owner: User, address: str, place: str) -> None:
    run = make_run(owner)
    assert entries(page(as_owner, address.format(run=run.pk)), " aria-current") == [place]


def test_counts_come_with_the_page_and_with_every_pulse(as_owner: Client, owner: User, redis_url: str) -> None:
    assert re.search(r'<span class="count" id="count-runs"\s*></span>', page(as_owner))
    make_run(owner)
    make_run(owner, status="running")
    make_run(owner, status="waiting")
    assert re.search(r'<span class="count" id="count-runs"\s*>2 live</span>', page(as_owner))
    pulse = page(as_owner, "/pulse/")
    assert '<span class="count" id="count-runs" hx-swap-oob="true">2 live</span>' in pulse
    assert '<span class="count" id="count-overview" hx-swap-oob="true">1 waits</span>' in pulse


def test_every_key_of_the_rail_leads_to_one_place(as_owner: Client) -> None:
    keys = re.findall(r'data-key="([^"]+)"', page(as_owner))
    assert {"g o", "g r", "g s", "g n", "/", "t", "?"} <= set(keys)
    assert len(keys) == len(set(keys))
    letters = [place.key for place in layout.MENU]
    assert len(letters) == len(set(letters))


def test_search_is_a_link_where_scripts_do_not_run(as_owner: Client) -> None:
    found = re.search(r'<a class="search-link" id="find" href="(/search/|/runs/)"', page(as_owner))
    assert found
    assert as_owner.get(found[1]).status_code == 200


def test_a_viewer_is_offered_no_query(client: Client, teammate: User) -> None:
    client.force_login(teammate)
    assert "/query/" not in page(client)


# --- breadcrumbs -----------------------------------------------------------------------------------------


def test_breadcrumbs_are_the_address(as_owner: Client, owner: User) -> None:
    run = make_run(owner)
    assert layout.breadcrumbs("/") == []
    assert layout.breadcrumbs("/runs/") == [("Overview", "/"), ("Runs", "/runs/")]
    assert layout.breadcrumbs("/settings/datasets/")[1:] == [
        ("Settings", "/settings/"),
        ("Datasets", "/settings/datasets/"),
    ]
    assert layout.breadcrumbs("/query/")[-1][0] == "New run"
    text = page(as_owner, f"/runs/{run.pk}/")
    way = text.partition('<nav class="breadcrumbs"')[2].partition("</nav>")[0]
    links = re.findall(r'href="([^"]+)"', way)
    assert links == ["/", "/runs/", f"/runs/{run.pk}/"]
    assert f'aria-current="page">Run {run.pk}</a>' in way
    for link in links:
        assert as_owner.get(link).status_code == 200
    assert text.count('class="breadcrumbs"') == 1


@pytest.mark.usefixtures("more_pages")
def test_breadcrumbs_of_odd_addresses_lead_back_to_them() -> None:
    assert layout.breadcrumbs("/things/hf:a/b c?/7/")[1:] == [
        ("Things", "/things/"),
        ("7", "/things/hf:a/b%20c%3F/7/"),
    ]
    assert layout.breadcrumbs("/tidy-things/<b>")[-1] == ("<b>", "/tidy-things/%3Cb%3E")
    assert len(layout.breadcrumbs("/" + "things/" * 5000)) <= layout.DEEPEST
    assert layout.breadcrumbs("//")[1:] == []


def test_a_view_may_name_the_way_itself(rf, as_owner: Client) -> None:
    given = {"breadcrumbs": [("Units", "/units/"), ("<b>", "/units/7/")], "request": rf.get("/units/7/")}
    text = render_to_string("base.html", given)
    assert 'href="/units/7/" aria-current="page">&lt;b&gt;</a>' in text


# --- states ----------------------------------------------------------------------------------------------


def test_states_show_what_they_are_given_as_text() -> None:
    given = {name: f"<{name}>" for name in ("title", "words", "what", "kept", "remedy", "action")} | {"url": "/runs/"}
    for name, told in {
        "empty": ("title", "words", "action"),
        "partial": ("what", "words"),
        "failed": ("title", "kept", "remedy", "action"),
        "loading": ("words",),
    }.items():
        text = render_to_string(f"display/{name}.html", given)
        for word in told:
            assert f"&lt;{word}&gt;" in text, name
    assert 'role="alert"' in render_to_string("display/failed.html", given)
    assert 'aria-busy="true"' in render_to_string("display/loading.html", given)


def test_every_script_is_a_file_of_ours_and_every_dialog_has_a_name(as_owner: Client) -> None:
    text = page(as_owner)
    assert all(
        source.startswith(("/static/", "/bundles/")) for source in re.findall(r'<script[^>]* src="([^"]+)"', text)
    )
    assert all("aria-label" in dialog for dialog in re.findall(r"<dialog[^>]*>", text))


def test_motion_and_focus_are_looked_after() -> None:
    text = (ROOT / "static/css/display/base.css").read_text()
    assert "prefers-reduced-motion: reduce" in text
    assert ":focus-visible" in text
