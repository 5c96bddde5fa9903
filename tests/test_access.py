"""Every address: anonymous visitors are asked to sign in, strangers find nothing, viewers change nothing."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Run
from experiments.urls import urlpatterns
from tests.builders import make_run

KEY = "0" * 64
OPEN = {"sign-in", "sign-out", "enter", "home"}
"""Addresses that hold nothing of the team's."""
READ = {
    "runs": "/runs/",
    "run": "/runs/{run}/",
    "image": f"/images/{KEY}.png",
    "pulse": "/pulse/",
}
RESEARCH = {"query": "/query/", "query-unit": "/query/unit/", "query-command": "/query/command/"}
WRITE = {"query": "/query/", "run-stop": "/runs/{run}/stop/"}


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner)


def test_every_address_is_in_a_table_here() -> None:
    assert {pattern.name for pattern in urlpatterns} == OPEN | READ.keys() | RESEARCH.keys() | WRITE.keys()


@pytest.mark.parametrize("path", [*READ.values(), *RESEARCH.values()])
def test_an_anonymous_reader_is_sent_to_the_sign_in_page(client: Client, run: Run, path: str) -> None:
    path = path.format(run=run.pk)
    response = client.get(path)
    assert response.status_code == 302
    assert response["Location"] == f"/sign-in/?next={path}"


@pytest.mark.parametrize("path", WRITE.values())
def test_an_anonymous_writer_is_sent_to_the_sign_in_page(client: Client, run: Run, path: str) -> None:
    response = client.post(path.format(run=run.pk))
    assert response.status_code == 302
    assert response["Location"].startswith("/sign-in/")
    run.refresh_from_db()
    assert not run.cancel_requested


@pytest.mark.parametrize("path", [*READ.values(), *RESEARCH.values()])
def test_a_stranger_finds_nothing(client: Client, stranger: User, run: Run, path: str) -> None:
    client.force_login(stranger)
    response = client.get(path.format(run=run.pk))
    assert response.status_code == 404
    assert run.question.encode() not in response.content


@pytest.mark.parametrize("path", WRITE.values())
def test_a_stranger_who_writes_finds_nothing(client: Client, stranger: User, run: Run, path: str) -> None:
    client.force_login(stranger)
    assert client.post(path.format(run=run.pk)).status_code == 404


@pytest.mark.parametrize("path", [*WRITE.values(), *RESEARCH.values()])
def test_a_viewer_who_writes_is_told_which_role_it_takes(client: Client, teammate: User, run: Run, path: str) -> None:
    client.force_login(teammate)
    response = client.post(path.format(run=run.pk)) if path in WRITE.values() else client.get(path)
    assert response.status_code == 403
    assert "needs the role Researcher; yours is Viewer" in response.content.decode()
    run.refresh_from_db()
    assert not run.cancel_requested
    assert Run.objects.count() == 1


@pytest.mark.parametrize("path", ["/runs/", "/runs/{run}/"])
def test_a_viewer_reads_and_is_offered_no_way_to_write(client: Client, teammate: User, run: Run, path: str) -> None:
    client.force_login(teammate)
    page = client.get(path.format(run=run.pk)).content.decode()
    assert run.question in page
    assert "/query/" not in page
    assert "/stop/" not in page


@pytest.mark.parametrize("path", ["/runs/{run}/stop/"])
def test_a_button_is_no_link(as_owner: Client, run: Run, path: str) -> None:
    assert as_owner.get(path.format(run=run.pk)).status_code == 405


def test_a_run_that_does_not_exist_is_not_found(as_owner: Client) -> None:
    assert as_owner.get("/runs/999/").status_code == 404
    assert as_owner.post("/runs/999/stop/").status_code == 404
