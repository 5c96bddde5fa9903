"""Who may do the small things: another's export, files by a token that only reads, views that the team is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.api.interface import api
from experiments.models import ApiToken, Export, ExportSubject, Format, Job, JobKind, JobStatus, SavedView, TokenScope
from tests.support.builders import make_run
from tests.support.people import member

pytestmark = pytest.mark.django_db


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def ask(
    user: User, method: str, path: str, scope: TokenScope = TokenScope.WRITE, body: Any = None, **headers: str
) -> int:
    """What the API answers to one of this person's tokens."""
    headers |= {"Authorization": f"Bearer {ApiToken.issue(user, 'tests', scope)[1]}"}
    send = getattr(Client(), method)
    return int(send(f"/api/v1{path}", json.dumps(body), content_type="application/json", headers=headers).status_code)


@pytest.fixture
def export(teammate: User) -> Export:
    """A viewer's, which waits for a worker."""
    job = Job.objects.create(kind=JobKind.EXPORT, subject="Runs as csv", asked_by=teammate)
    return Export.objects.create(job=job, what=ExportSubject.RUNS, format=Format.CSV)


@pytest.mark.parametrize("by_token", [False, True])
def test_an_export_is_stopped_and_resumed_by_whoever_asked_for_it(
    export: Export, teammate: User, owner: User, redis_url: str, by_token: bool
) -> None:
    def tried(user: User, act: str) -> int:
        if by_token:
            return ask(user, "post", f"/jobs/{export.job_id}/{act}")
        return client_of(user).post(f"/settings/jobs/{export.job_id}/{act}/").status_code

    done = 200 if by_token else 302
    status = lambda: Job.objects.get(pk=export.job_id).status  # noqa: E731
    assert tried(owner, "stop") == 403
    assert tried(member("reviewer", "REVIEWER"), "stop") == 403
    assert status() == JobStatus.QUEUED
    assert tried(teammate, "stop") == done
    assert status() == JobStatus.STOPPED
    assert tried(owner, "resume") == 403
    assert tried(teammate, "resume") == done
    assert status() == JobStatus.QUEUED
    assert tried(member("admin", "ADMIN"), "stop") == done


def test_other_work_is_for_those_who_may_ask_for_it(teammate: User, owner: User) -> None:
    job = Job.objects.create(kind=JobKind.INDEX, subject="toybox", asked_by=teammate)
    assert ask(teammate, "post", f"/jobs/{job.pk}/stop") == 403
    assert ask(owner, "post", f"/jobs/{job.pk}/stop") == 200
    assert ask(teammate, "post", f"/jobs/{job.pk}/resume") == 403


@pytest.mark.parametrize("scope", [TokenScope.READ, TokenScope.RUN])
def test_a_token_that_reads_makes_and_removes_no_file(
    export: Export, teammate: User, redis_url: str, scope: TokenScope
) -> None:
    make_run(teammate)
    asked = {"what": "runs", "format": "csv"}
    assert ask(teammate, "post", "/exports", scope, asked) == 403
    assert ask(teammate, "delete", f"/exports/{export.pk}", scope) == 403
    assert Export.objects.get() == export
    assert ask(teammate, "post", "/exports", body=asked) == 202
    assert ask(teammate, "delete", f"/exports/{export.pk}") == 204


def test_a_viewer_keeps_views_for_themselves(teammate: User) -> None:
    make_run(teammate)
    viewer = client_of(teammate)
    assert "Save this view" in viewer.get("/runs/").content.decode()
    assert 'name="shared"' not in viewer.get("/runs/").content.decode()
    assert viewer.post("/runs/views/", {"name": "mine"}).status_code == 302
    kept = SavedView.objects.get()
    assert viewer.post("/runs/views/", {"name": "ours", "shared": "on"}).status_code == 403
    assert viewer.post(f"/runs/views/{kept.pk}/", {"name": "mine", "shared": "on"}).status_code == 403
    assert ask(teammate, "post", "/views", body={"name": "ours", "shared": True}) == 403
    assert ask(teammate, "put", f"/views/{kept.pk}", body={"name": "mine", "shared": True}, **{"If-Match": "*"}) == 403
    assert not SavedView.objects.filter(shared=True).exists()


def test_a_researcher_shares_views(owner: User) -> None:
    make_run(owner)
    researcher = client_of(owner)
    assert 'name="shared"' in researcher.get("/runs/").content.decode()
    assert researcher.post("/runs/views/", {"name": "ours", "shared": "on"}).status_code == 302
    assert ask(owner, "post", "/views", body={"name": "theirs", "shared": True}) == 201
    assert SavedView.objects.filter(shared=True).count() == 2


def test_no_two_schemas_of_the_document_share_a_name() -> None:
    """Of two classes of one name the document would show one, for both."""
    named: dict[str, set[type]] = {}
    for found in every_schema():
        named.setdefault(found.__name__, set()).add(found)
    assert {name: kinds for name, kinds in named.items() if len(kinds) > 1} == {}


def every_schema() -> set[type]:
    import importlib
    import pkgutil

    from ninja import Schema

    import experiments.api as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    assert api.get_openapi_schema()["paths"]
    found: set[type] = set()
    left: list[type] = [Schema]
    while left:
        for each in left.pop().__subclasses__():
            if each not in found and each.__module__.startswith(package.__name__) and "[" not in each.__name__:
                found.add(each)
            left.append(each)
    return found
