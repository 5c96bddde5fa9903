"""The page, the API and the file of a list are filtered by the same words: what one takes and the others do not is a
filter that somebody misses."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.accounts import audit_query
from experiments.accounts.api import AuditFilters
from experiments.api.interface import api
from experiments.display.narrowing import Filter
from experiments.evaluations import lists as evaluation_lists
from experiments.evaluations.api import EvaluationFilters, EvaluationItemFilters
from experiments.exchange.export_query import KNOWN
from experiments.gallery.api import ExperimentFilters, ObservationFilters
from experiments.gallery.lists import Filters
from experiments.models import AuditEntry, ExportSubject, Observation
from experiments.pairwise import lists as trial_lists
from experiments.pairwise.api import TrialFilters
from experiments.reviews import lists as review_lists
from experiments.reviews import queue_lists
from experiments.reviews.api import ItemFilters, QueueFilters
from experiments.runs.api import RunFilters
from experiments.runs.filters import FILTERS as RUN_FILTERS
from experiments.sweeps import lists as sweep_lists
from experiments.sweeps.api import SweepFilters
from tests.support.api_world import Script, fill
from tests.support.builders import make_run
from tests.support.people import member

LOOKS = {"sort", "order"}
"""What says how a list is ordered, rather than what is in it."""


@pytest.mark.parametrize(
    ("schema", "more"), [(ObservationFilters, set()), (ExperimentFilters, {"status"})], ids=["images", "experiments"]
)
def test_the_api_of_the_gallery_takes_the_filters_of_its_page(schema: type, more: set[str]) -> None:
    assert schema.model_fields.keys() - LOOKS == (Filters.base_fields.keys() - LOOKS) | more


@pytest.mark.parametrize("what", [ExportSubject.OBSERVATIONS, ExportSubject.EXPERIMENTS])
def test_a_file_of_the_gallery_takes_the_filters_of_its_page(what: ExportSubject) -> None:
    assert Filters.base_fields.keys() - LOOKS <= KNOWN[what]


@pytest.mark.parametrize(
    ("schema", "filters", "what"),
    [
        (SweepFilters, sweep_lists.FILTERS, ExportSubject.SWEEPS),
        (EvaluationFilters, evaluation_lists.FILTERS, None),
        (EvaluationItemFilters, evaluation_lists.ITEM_FILTERS, None),
        (AuditFilters, audit_query.FILTERS, None),
    ],
    ids=["sweeps", "evaluations", "items", "audit"],
)
def test_the_api_and_the_file_take_the_declared_filters(
    schema: type, filters: Mapping[str, Filter], what: ExportSubject | None
) -> None:
    assert schema.model_fields.keys() == filters.keys()
    assert what is None or KNOWN[what] == filters.keys()
    for name, each in filters.items():
        assert schema.model_fields[name].description == (each.description or None)


@pytest.mark.parametrize("path", ["/sweeps/?status=dancing", "/evaluations/?kind=dancing"])
def test_a_page_says_which_filter_is_left_out(owner: User, path: str) -> None:
    fill(owner)
    browser = Client()
    browser.force_login(owner)
    found = browser.get(path).context["found"]
    assert "dancing" in next(iter(found.problems.values()))
    answer = Script(owner).get(path.replace("/?", "?"))
    assert answer.status_code == 422


def test_the_file_of_label_checks_takes_the_filters_of_the_api() -> None:
    taken = api.get_openapi_schema()["paths"]["/api/v1/checks"]["get"]["parameters"]
    assert {each["name"] for each in taken if each["in"] == "query"} - {"cursor", "limit"} == KNOWN[
        ExportSubject.CHECKS
    ]


def test_the_api_the_file_and_the_page_of_runs_take_the_same_filters(owner: User) -> None:
    assert RunFilters.model_fields.keys() == RUN_FILTERS.keys() == KNOWN[ExportSubject.RUNS]
    make_run(owner)
    browser = Client()
    browser.force_login(owner)
    form = browser.get("/runs/").content.decode().partition('id="filters"')[2].partition("</form>")[0]
    assert {name for name in RUN_FILTERS if f'name="{name}"' not in form} == {"run"}, "numbers: from other pages"


@pytest.mark.parametrize(
    ("schema", "known", "what"),
    [
        (QueueFilters, queue_lists.FILTERS, ExportSubject.QUEUES),
        (TrialFilters, trial_lists.FILTERS, ExportSubject.TRIALS),
        (ItemFilters, {"show", *review_lists.OF_RUNS}, ExportSubject.REVIEWS),
    ],
    ids=["queues", "trials", "items"],
)
def test_the_api_and_the_file_of_review_take_the_filters_of_its_pages(
    schema: type, known: set[str], what: ExportSubject
) -> None:
    assert schema.model_fields.keys() == known
    assert known <= KNOWN[what]


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
