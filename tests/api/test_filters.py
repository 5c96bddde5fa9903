"""The page, the API and the file of a list are filtered by the same words: what one takes and the others do not is a
filter that somebody misses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from experiments.accounts import audit_query
from experiments.api.interface import api
from experiments.circuits import lists as circuit_lists
from experiments.display.narrowing import Filter
from experiments.evaluations import lists as evaluation_lists
from experiments.exchange.export_query import KNOWN
from experiments.exchange.export_words import ExportForm
from experiments.gallery.lists import FILTERS as GALLERY_FILTERS
from experiments.label_checks import lists as check_lists
from experiments.models import AuditEntry, ExportSubject, Observation, ReviewQueue
from experiments.pairwise import lists as trial_lists
from experiments.reviews import lists as review_lists
from experiments.reviews import queue_lists
from experiments.runs import filters as run_filters
from experiments.studies import lists as study_lists
from experiments.sweeps import lists as sweep_lists
from experiments.units import lists as unit_lists
from experiments.units import sheet
from tests.support.api_world import Script, fill
from tests.support.people import member


@dataclass(frozen=True)
class FilteredList:
    """A list: its declared filters, its address if a page shows it, and its files."""

    filters: Mapping[str, Filter]
    page: str = ""
    files: ExportSubject | None = None
    apart: frozenset[str] = frozenset()
    """Filters that the page takes from links, without a field."""


LISTS = {
    "list_runs": FilteredList(run_filters.FILTERS, "runs", ExportSubject.RUNS, frozenset({"run"})),
    "list_observations": FilteredList(GALLERY_FILTERS, "", ExportSubject.OBSERVATIONS),
    "list_experiments": FilteredList(GALLERY_FILTERS, "", ExportSubject.EXPERIMENTS),
    "list_units": FilteredList(unit_lists.UNIT_FILTERS),
    "list_labels": FilteredList(unit_lists.LABEL_FILTERS, "", ExportSubject.LABELS),
    "list_layer_units": FilteredList(sheet.FILTERS, "units-layer", None, frozenset({"colour", "state"})),
    "list_circuits": FilteredList(circuit_lists.FILTERS, "circuits"),
    "list_queues": FilteredList(queue_lists.FILTERS, "review", ExportSubject.QUEUES),
    "list_items": FilteredList(review_lists.ITEM_FILTERS, "review-queue", ExportSubject.REVIEWS),
    "list_trials": FilteredList(trial_lists.FILTERS, "pairwise", ExportSubject.TRIALS),
    "list_studies": FilteredList(study_lists.FILTERS, "studies"),
    "list_sweeps": FilteredList(sweep_lists.FILTERS, "", ExportSubject.SWEEPS),
    "list_label_checks": FilteredList(check_lists.FILTERS, "", ExportSubject.CHECKS),
    "list_evaluations": FilteredList(evaluation_lists.FILTERS),
    "list_evaluation_items": FilteredList(evaluation_lists.ITEM_FILTERS),
    "list_audit": FilteredList(audit_query.FILTERS, "settings-audit"),
}
"""Operation -> what declares its filters."""
OTHERS = {"list_people", "list_notifications", "list_models", "list_exemplars", "list_events", "search_all"}
"""Lists with parameters of their own."""
LOOKS = {"sort", "order", "start", "limit", "cursor"}
"""What says how a list is ordered, rather than what is in it."""


def read_parameters() -> dict[str, dict[str, str | None]]:
    """Return the filters of each list in the published document, with their descriptions."""
    lists = {}
    for path in api.get_openapi_schema()["paths"].values():
        taken = [each for each in path.get("get", {}).get("parameters", ()) if each["in"] == "query"]
        if {each["name"] for each in taken} >= {"limit"}:
            filters = {each["name"]: each.get("description") for each in taken if each["name"] not in LOOKS}
            lists[path["get"]["operationId"]] = filters
    return {name: filters for name, filters in lists.items() if filters}


def test_every_filtered_list_of_the_api_declares_its_filters() -> None:
    parameters = read_parameters()
    assert parameters.keys() == LISTS.keys() | OTHERS
    for name, each in LISTS.items():
        declared = {key: row.description or None for key, row in each.filters.items()}
        more = {"status"} if name == "list_experiments" else set()
        assert {key: words for key, words in parameters[name].items() if key not in more} == declared, name


def test_the_file_of_a_list_takes_its_filters(db: None) -> None:
    for name, each in LISTS.items():
        missing = each.filters.keys() - KNOWN[each.files] if each.files else set()
        assert not missing, name
        field_names = ExportForm(each.files, "csv", "").fields.keys() if each.files else each.filters.keys()
        assert each.filters.keys() <= field_names, name


def test_the_page_of_a_list_has_a_field_for_each_filter(db: None) -> None:
    admin = member("admin", "ADMIN")
    fill(admin)
    browser = Client()
    browser.force_login(admin)
    places = {"units-layer": ("toybox", "layer4"), "review-queue": (ReviewQueue.objects.get().pk,)}
    for name, each in LISTS.items():
        if each.page:
            html = browser.get(reverse(each.page, args=places.get(each.page, ()))).content.decode()
            assert {key for key in each.filters if f'name="{key}"' not in html} <= each.apart, name


@pytest.mark.parametrize(
    ("page", "operation"),
    [
        ("sweeps/?status=", "sweeps?status="),
        ("evaluations/?kind=", "evaluations?kind="),
        ("review/?status=", "queues?status="),
        ("pairwise/?status=", "trials?status="),
        ("circuits/?q=", "circuits?q="),
    ],
)
def test_a_page_says_which_filter_is_left_out(owner: User, page: str, operation: str) -> None:
    fill(owner)
    browser = Client()
    browser.force_login(owner)
    wrong = "dancing" * 30
    found = browser.get(f"/{page}{wrong}").context["found"]
    assert found.problems
    assert not found.values
    answer = Script(owner).get(f"/{operation}{wrong}")
    assert answer.status_code == 422


@pytest.mark.parametrize("query", ["origin=edited", "tag=unused", "low=100", "origin=original", "differs=true"])
def test_the_page_and_the_api_find_as_many(owner: User, query: str) -> None:
    world = fill(owner)
    Observation.objects.update(is_original=False, origin="generated", differs=False)
    script, browser = Script(owner), Client()
    browser.force_login(owner)
    assert len(script.get("/experiments?run=" + str(world.run.pk)).json()["items"]) == 1
    for path, view in (("/observations", ""), ("/experiments", "list")):
        assert script.get(f"{path}?{query}").json()["items"] == []
        page = browser.get(f"/experiments/?view={view}&{query}")
        assert page.context["page"].count.rows == 0
    changes = {"origin": query.partition("=")[2]} if query == "origin=edited" else {}
    changes |= {"is_original": True} if query == "origin=original" else {}
    changes |= {"differs": True} if query == "differs=true" else {}
    if not changes:
        return
    Observation.objects.update(**changes)
    for path, view in (("/observations", ""), ("/experiments", "list")):
        found = len(script.get(f"{path}?{query}").json()["items"])
        assert found == browser.get(f"/experiments/?view={view}&{query}").context["page"].count.rows > 0


def test_days_that_are_swapped_are_told_on_the_page_and_by_the_api(db: None) -> None:
    admin = member("admin", "ADMIN")
    browser = Client()
    browser.force_login(admin)
    query = "since=2026-02-01&until=2026-01-01"
    assert "swap the two" in browser.get(f"/settings/audit/?{query}").content.decode()
    problem = Script(admin).get(f"/audit?{query}")
    assert problem.status_code == 422
    assert problem.json()["errors"][0]["field"] == "until"


def test_the_audit_is_read_page_by_page(db: None) -> None:
    admin = member("admin", "ADMIN")
    AuditEntry.objects.bulk_create(AuditEntry(name="admin", verb=verb) for verb in ("run.stopped", "run.paused") * 3)
    script = Script(admin)
    first = script.get("/audit?verb=run.stopped&limit=2").json()
    rest = script.get(f"/audit?verb=run.stopped&limit=2&cursor={first['next']}").json()
    assert [each["verb"] for each in first["items"] + rest["items"]] == ["run.stopped"] * 3
    assert rest["next"] is None
