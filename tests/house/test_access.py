"""Every address: anonymous visitors are asked to sign in, strangers find nothing, viewers change nothing."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.models import (
    Comment,
    Dataset,
    Evaluation,
    Export,
    Job,
    Label,
    LabelCheck,
    Layer,
    Notification,
    PairwiseTrial,
    Preset,
    Review,
    ReviewQueue,
    Run,
    SavedView,
    Share,
    Sweep,
    Thread,
    Unit,
    VisionModelRow,
)
from experiments.urls import urlpatterns as features
from tests.house.addresses import (
    ADMIN,
    ADMIN_READ,
    ASK,
    KEEP,
    KEY,
    NAMED,
    OPEN,
    READ,
    RESEARCH,
    REVIEW,
    REVIEW_READ,
    SHARED,
    WRITE,
)
from tests.support.builders import make_run


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner)


@pytest.fixture
def ids(run: Run) -> dict[str, int]:
    """What stands in the addresses."""
    own = VisionModelRow.objects.create(name="own")
    layer = Layer.objects.create(model=own, position=0, name="fc", kind="logit", units=2)
    unit = Unit.objects.create(layer=layer, number=1)
    label = Label.objects.create(text="red", source="person")
    label.units.add(unit)
    view = SavedView.objects.create(owner=User.objects.create_user("leaver"), name="theirs")
    job = Job.objects.create(kind="index", subject="folder:/own", options={"model": "hf:own", "layers": ["fc"]})
    return {
        "run": run.pk,
        "export": Export.objects.create(job=Job.objects.create(kind="export"), what="runs", format="csv").pk,
        "model": VisionModelRow.objects.create(name="hf:own", revision="1", added=timezone.now()).pk,
        "dataset": Dataset.objects.create(key="folder:/own", label="own", added=timezone.now()).pk,
        "job": job.pk,
        "view": view.pk,
        "preset": Preset.objects.create(owner=view.owner, name="theirs").pk,
        "share": Share.issue(run.pk, run.owner, timezone.now(), names=False, comments=False)[0].pk,
        **said(run),
        "queue": queue_of(run).pk,
        "trial": PairwiseTrial.objects.create(name="theirs", owner=run.owner, sources=["agent", "person"]).pk,
        "evaluation": Evaluation.objects.create(name="theirs", kind="labels", owner=run.owner).pk,
        "sweep": Sweep.objects.create(name="theirs", owner=run.owner, task="describe", selection={}).pk,
        "check": LabelCheck.objects.create(key=KEY, unit=unit, text="red", options={}).pk,
        "label": label.pk,
    }


def queue_of(run: Run) -> ReviewQueue:
    """A queue with this run to review."""
    queue = ReviewQueue.objects.create(name="theirs", owner=run.owner)
    queue.items.create(run=run, position=1)
    return queue


def test_a_researcher_reviews_nothing(as_owner: Client, ids: dict[str, int]) -> None:
    for path in [*REVIEW.values(), *REVIEW_READ.values()]:
        send = as_owner.post if path in REVIEW.values() else as_owner.get
        response = send(path.format(**ids))
        assert response.status_code == 403, path
        assert "yours is Researcher" in response.content.decode()
        assert not Review.objects.exists()


def said(run: Run) -> dict[str, int]:
    """A thread with a comment, and what its author was told."""
    thread = Thread.objects.create(run=run, on="run")
    comment = Comment.objects.create(thread=thread, author=run.owner, text="Too few.")
    told = Notification.objects.create(user=run.owner, kind="reply", words="Look.", url="/")
    return {"thread": thread.pk, "comment": comment.pk, "notification": told.pk}


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
        assert (VisionModelRow.objects.count(), Dataset.objects.count(), Job.objects.count()) == (2, 1, 2)


def test_a_link_that_is_not_good_is_a_page_that_is_not_there(client: Client, run: Run) -> None:
    for path in SHARED.values():
        response = client.get(path.format(token="x" * 43))
        assert response.status_code == 404, path
        assert b"Ask whoever gave it to you" in response.content


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
