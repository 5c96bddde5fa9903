"""Every address: anonymous visitors are asked to sign in, strangers find nothing, viewers change nothing."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import (
    Dataset,
    Job,
    Review,
    Run,
    VisionModelRow,
)
from experiments.urls import urlpatterns as features
from tests.support.addresses import (
    ADMIN,
    ADMIN_READ,
    ASK,
    KEEP,
    NAMED,
    OPEN,
    READ,
    RESEARCH,
    REVIEW,
    REVIEW_READ,
    SHARED,
    WRITE,
)


def test_a_researcher_reviews_nothing(as_owner: Client, ids: dict[str, int]) -> None:
    for path in [*REVIEW.values(), *REVIEW_READ.values()]:
        send = as_owner.post if path in REVIEW.values() else as_owner.get
        response = send(path.format(**ids))
        assert response.status_code == 403, path
        assert "yours is Researcher" in response.content.decode()
        assert not Review.objects.exists()


def test_every_address_is_in_a_table_here() -> None:
    assert {
        pattern.name for feature in features for pattern in feature.url_patterns
    } == OPEN | NAMED.keys() | SHARED.keys()


def test_an_anonymous_reader_is_sent_to_the_sign_in_page(client: Client, ids: dict[str, int]) -> None:
    for path in [*READ.values(), *RESEARCH.values(), *REVIEW_READ.values(), *ADMIN_READ.values()]:
        address = path.format(**ids)
        response = client.get(address)
        assert response.status_code == 302, path
        assert response["Location"] == f"/sign-in/?next={address}"


def test_an_anonymous_writer_is_sent_to_the_sign_in_page(client: Client, run: Run, ids: dict[str, int]) -> None:
    for path in [*WRITE.values(), *ASK.values(), *ADMIN.values(), *KEEP.values(), *REVIEW.values()]:
        response = client.post(path.format(**ids))
        assert response.status_code == 302, path
        assert response["Location"].startswith("/sign-in/")
        run.refresh_from_db()
        assert not run.cancel_requested


def test_a_stranger_finds_nothing(client: Client, stranger: User, run: Run, ids: dict[str, int]) -> None:
    client.force_login(stranger)
    for path in [*READ.values(), *RESEARCH.values(), *REVIEW_READ.values(), *ADMIN_READ.values()]:
        response = client.get(path.format(**ids))
        assert response.status_code == 404, path
        assert run.question.encode() not in response.content


def test_a_stranger_who_writes_finds_nothing(client: Client, stranger: User, ids: dict[str, int]) -> None:
    client.force_login(stranger)
    for path in [*WRITE.values(), *ASK.values(), *ADMIN.values(), *KEEP.values(), *REVIEW.values()]:
        assert client.post(path.format(**ids)).status_code == 404


def test_a_viewer_who_writes_is_told_which_role_it_takes(
    client: Client, teammate: User, run: Run, ids: dict[str, int]
) -> None:
    client.force_login(teammate)
    for path in [*WRITE.values(), *RESEARCH.values(), *ASK.values()]:
        send = client.get if path in RESEARCH.values() else client.post
        response = send(path.format(**ids))
        assert response.status_code == 403, path
        assert "needs the role Researcher; yours is Viewer" in response.content.decode()
        run.refresh_from_db()
        assert not run.cancel_requested
        assert Run.objects.count() == 1


def test_a_researcher_adds_and_removes_nothing_that_workers_read(as_owner: Client, ids: dict[str, int]) -> None:
    for path in ADMIN.values():
        response = as_owner.post(path.format(**ids), {"name": "hf:x/y", "place": "/etc"})
        assert response.status_code == 403, path
        assert "needs the role Admin; yours is Researcher" in response.content.decode()
        assert (VisionModelRow.objects.count(), Dataset.objects.count(), Job.objects.count()) == (3, 1, 2)


def test_a_link_that_is_not_good_is_a_page_that_is_not_there(client: Client, run: Run) -> None:
    for path in SHARED.values():
        response = client.get(path.format(token="x" * 43))
        assert response.status_code == 404, path
        assert b"Ask the person who sent it" in response.content


def test_a_researcher_does_not_read_what_is_for_admins(as_owner: Client, ids: dict[str, int]) -> None:
    for path in ADMIN_READ.values():
        response = as_owner.get(path.format(**ids))
        assert response.status_code == 403, path
        assert "needs the role Admin; yours is Researcher" in response.content.decode()


@pytest.mark.parametrize("kind", ["model", "dataset"])
def test_a_researcher_does_not_ask_again_for_what_an_admin_added(
    as_owner: Client, ids: dict[str, int], kind: str
) -> None:
    job = Job.objects.create(kind=kind, subject="/etc", status="failed")
    assert as_owner.post(f"/settings/jobs/{job.pk}/resume/").status_code == 403
    job.refresh_from_db()
    assert job.status == "failed"


def test_a_viewer_sees_what_there_is_and_no_way_to_change_it(
    client: Client, teammate: User, ids: dict[str, int]
) -> None:
    client.force_login(teammate)
    for path in ["/settings/models/", "/settings/datasets/"]:
        page = client.get(path).content.decode()
        assert "own" in page
        assert page.count('method="post"') == 1, "but for signing out"


def test_a_viewer_reads_and_is_offered_no_way_to_write(client: Client, teammate: User, run: Run) -> None:
    client.force_login(teammate)
    for path in ["/runs/", "/runs/{run}/"]:
        page = client.get(path.format(run=run.pk)).content.decode()
        assert run.question in page
        assert "/query/" not in page
        assert "/stop/" not in page
        assert "/try-again/" not in page


def test_a_button_is_no_link(as_owner: Client, ids: dict[str, int]) -> None:
    for path in ["/runs/{run}/stop/", "/runs/{run}/try-again/", *ASK.values(), *ADMIN.values(), *REVIEW.values()]:
        assert as_owner.get(path.format(**ids)).status_code == 405


def test_a_run_that_does_not_exist_is_not_found(as_owner: Client) -> None:
    assert as_owner.get("/runs/999/").status_code == 404
    assert as_owner.post("/runs/999/stop/").status_code == 404
    assert as_owner.post("/runs/999/try-again/").status_code == 404
