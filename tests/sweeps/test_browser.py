"""A sweep in a real browser: from the form to a map that fills up by itself, paused and resumed on its page."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from experiments.models import Label, Layer, Run, Sweep
from experiments.sweeps import pages
from tests.support.browser import aside, assert_fits, needs_chromium, open_page
from tests.support.sweeps import create_sweep_runs
from tests.support.trials import unit

pytestmark = [pytest.mark.django_db(transaction=True), needs_chromium, pytest.mark.usefixtures("redis_url")]
EXPECTED = re.compile("WebSocket|404")


def test_from_the_form_to_a_map_that_fills_up(
    live_server, client: Client, owner: User, layers: list[Layer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ASKED_EVERY", 1)
    client.force_login(owner)
    errors: list[str] = []
    with open_page(live_server.url, client, errors) as page:
        page.goto(f"{live_server.url}/sweeps/")
        page.get_by_role("link", name="Start one").click()
        page.get_by_label("layer3").check()
        expect(page.locator("#preview")).to_contain_text("8")
        page.get_by_label("US dollars", exact=True).fill("0")
        expect(page.locator("#preview")).to_contain_text("lets nothing run")
        page.get_by_label("US dollars", exact=True).fill("5")
        assert_fits(page, 390, 1440)
        page.get_by_role("button", name="Start sweep").click()
        expect(page.get_by_text("0 of 8 done")).to_be_visible()
        sweep = aside(lambda: create_sweep_runs(Sweep.objects.get()))
        expect(page.locator(".map-legend")).to_contain_text("To come 8")
        aside(lambda: conclude(sweep, "red balls", "a red ball", "blue cones"))
        expect(page.get_by_text("3 of 8 done")).to_be_visible()
        expect(page.locator(".map-legend")).to_contain_text("Concluded 3")
        expect(page.locator(".label-groups li").first).to_contain_text("2")
        page.get_by_role("link", name="Similar labels").click()
        expect(page.locator(".map-legend")).to_contain_text("no label 5")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        expect(page.get_by_text(f"Paused by {owner.username}.")).to_be_visible()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        assert_fits(page, 390, 1440)
        page.locator(".label-groups a").first.click()
        expect(page.get_by_role("checkbox", name=re.compile("^Run "))).to_have_count(2)
    assert [error for error in errors if not EXPECTED.search(error)] == []


def conclude(sweep: Sweep, *labels: str) -> None:
    """The first of its runs, each with a label."""
    for run, text in zip(sweep.runs.order_by("pk"), labels, strict=False):
        Run.objects.filter(pk=run.pk).update(status="concluded", cost=0.25)
        found = unit(run.unit, Layer.objects.get(name=run.layer))
        Label.objects.create(text=text, source="run", run=run).units.add(found)
