"""Asking about a circuit in a browser: from its page to a run, and what its page then shows."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from experiments.models import Backbone, Circuit, Dataset, LabelCheck, Run, Toolset, Unit
from tests.support.browser import aside, needs_chromium, new_page, open_browser
from tests.support.circuit_runs import MEMBERS, make_toybox_circuit, toybox_row
from tests.support.people import signed_in
from tests.support.served import served
from tests.support.unit_pages import measured
from workers.metrics.members import score_members
from workers.record.decoding import encode
from workers.record.label_checks import CheckResult, NaturalResult

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),  # WhiteNoise reads its files at once
    needs_chromium,
]


def fill(circuit: Circuit) -> None:
    """What a worker would have written of its run: labels, a check, exemplars."""
    run = Run.objects.get()
    unit = Unit.objects.get(number=run.unit)
    shares = [[2, 2, 2], [2, 0, 2], [0, 0, 0], [0, 2, 0]]
    found = score_members(MEMBERS, shares, [1, 1, 0, 0])
    result = encode(CheckResult(NaturalResult(dataset="toybox", images=4, circuit=found)))
    check = LabelCheck.objects.create(
        key="x", unit=unit, text="balls", dataset="toybox", options={}, status="done", pearson=0.8, result=result
    )
    Run.objects.update(
        label_check=check, status="concluded", conclusion={"labels": ["balls"], "description": "It sees balls."}
    )
    Dataset.objects.create(key="photos", label="Photographs", images=10, available=True)
    measured(unit)


def test_a_circuit_is_asked_about_from_its_page(redis_url: str, owner: User) -> None:
    toybox_row()
    Dataset.objects.create(key="toybox", label="toybox", images=200, available=True)
    Toolset.objects.create(key="toybox", label="toybox", available=True)
    Backbone.objects.create(key="scripted", label="scripted", available=True)
    circuit = make_toybox_circuit(owner)
    client, errors = signed_in(owner), list[str]()
    with open_browser() as browser, served() as url:
        page = new_page(browser, url, client, errors)
        page.goto(f"{url}{circuit.get_absolute_url()}")
        page.locator("#main").get_by_role("link", name="New run").click()
        expect(page.locator("#id_question")).to_have_value("What does a circuit of 3 members in toybox respond to?")
        page.get_by_label("Find a bias").check()  # a task about classes does not lead away from the circuit
        expect(page.locator("#id_layer")).to_have_value("circuit")
        page.get_by_label("Describe a neuron").check()
        page.get_by_role("button", name="Start run").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("circuit of 3 members")
        aside(lambda: fill(circuit))
        page.goto(f"{url}{circuit.get_absolute_url()}")
        expect(page.locator("#compared tbody tr")).to_have_count(5)
        expect(page.get_by_role("link", name=re.compile(r"^run \d+$")).first).to_be_visible()
        browser.close()
    assert errors == []
