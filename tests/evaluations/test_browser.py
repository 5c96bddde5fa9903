"""From the form to the result in a real browser: what it would take, progress that follows, no overflow."""

from __future__ import annotations

import re
from random import Random

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from experiments.models import Backbone, Evaluation, EvaluationItem, EvaluationKind, Job, LabelCheck, Run
from tests.support.browser import aside, assert_fits, needs_chromium, open_page
from tests.support.seeding import evaluations
from tests.support.seeding.results import make_result
from workers.record.decoding import encode

pytestmark = [pytest.mark.django_db(transaction=True), needs_chromium, pytest.mark.usefixtures("redis_url")]
EXPECTED = re.compile("WebSocket|404")


def test_from_the_form_to_the_result(
    live_server, client: Client, owner: User, scripted: Backbone, checks: list[LabelCheck], runs: list[Run]
) -> None:
    client.force_login(owner)
    errors: list[str] = []
    with open_page(live_server.url, client, errors) as page:
        page.goto(f"{live_server.url}/evaluations/")
        page.get_by_role("link", name="Start one").click()
        page.get_by_role("link", name="Synthetic neurons").click()
        page.get_by_label("Backbone").select_option("scripted")
        page.get_by_label("How many neurons").fill("6")
        expect(page.locator("#preview")).to_contain_text("Runs6")
        page.get_by_role("button", name="Start evaluation").click()
        expect(page.locator("#progress")).to_contain_text("Not planned yet")
        aside(lambda: finish(checks, runs))
        expect(page.locator("#progress")).to_contain_text("6 of 6")
        expect(page.locator(".figures-table")).to_contain_text("conditional")
        page.get_by_text("Show as table").first.click()
        expect(page.locator(".result-plot .plain-table").first).to_be_visible()
        assert_fits(page, 390, 1440)
        page.locator("#items .check-mark[href]").first.click()
        expect(page.locator(".check-head")).to_contain_text("Is the label right?")
        assert_fits(page, 390, 1440)
    assert [error for error in errors if not EXPECTED.search(error)] == []


def finish(checks: list[LabelCheck], runs: list[Run]) -> None:
    """As a worker leaves it."""
    row = Evaluation.objects.get()
    made = evaluations.make_evaluation(row.owner, EvaluationKind(row.kind), checks, runs, Random(1))
    EvaluationItem.objects.filter(evaluation=made).update(evaluation=row)
    keys = list(row.items.values_list("pk", flat=True))
    Evaluation.objects.filter(pk=row.pk).update(
        planned=True, result=encode(make_result(EvaluationKind(row.kind), keys, Random(1)))
    )
    Job.objects.filter(pk=row.job_id).update(status="done", result="Done: 6 of 6 items, 1 failed.")
