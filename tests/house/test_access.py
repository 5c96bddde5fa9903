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
from tests.support.builders import make_run

KEY = "0" * 64
OPEN = {"sign-in", "sign-in-with", "sign-in-back", "sign-out", "enter", "join", "settings"}
OPEN |= {"healthz", "readyz", "metrics"}
"""Addresses that hold nothing of the team's."""
READ = {
    "overview": "/",
    "runs": "/runs/",
    "run": "/runs/{run}/",
    "run-events": "/runs/{run}/events/",
    "run-events-file": "/runs/{run}/events.jsonl",
    "experiments": "/experiments/",
    "experiment": "/runs/{run}/experiments/1/",
    "image": f"/images/{KEY}.png",
    "image-page": f"/images/{KEY}/",
    "thumbnail": f"/images/{KEY}/thumb-160.webp",
    "pairwise": "/pairwise/",
    "pairwise-trial": "/pairwise/{trial}/",
    "pairwise-file": "/pairwise/{trial}/votes.csv",
    "compare": "/compare/",
    "evaluations": "/evaluations/",
    "evaluation": "/evaluations/{evaluation}/",
    "evaluation-file": "/evaluations/{evaluation}/figures.csv",
    "evaluations-compare": "/evaluations/compare/",
    "sweeps": "/sweeps/",
    "sweep": "/sweeps/{sweep}/",
    "sweep-file": "/sweeps/{sweep}/runs.csv",
    "label-check": "/checks/{check}/",
    "check-answers": "/checks/{check}/answers.csv",
    "run-check": "/runs/{run}/check/",
    "pulse": "/pulse/",
    "units": "/units/",
    "units-model": "/units/own/",
    "units-layer": "/units/own/fc/",
    "unit-random": "/units/own/fc/random/",
    "unit": "/units/own/fc/1/",
    "search": "/search/",
    "jump": "/jump/",
    "exports": "/exports/",
    "exports-file": "/exports/{export}/file/",
    "comments": "/runs/{run}/comments/",
    "comments-at": "/runs/{run}/comments/at/1/",
    "comments-marks": "/runs/{run}/comments/marks/",
    "comment": "/comments/{comment}/",
    "notifications": "/notifications/",
    "notifications-bell": "/notifications/bell/",
    "notification": "/notifications/{notification}/",
    "settings-models": "/settings/models/",
    "settings-layers": "/settings/models/{model}/layers/",
    "settings-datasets": "/settings/datasets/",
    "settings-workers": "/settings/workers/",
    "settings-tokens": "/settings/tokens/",
    "settings-you": "/settings/you/",
    "review": "/review/",
    "review-queue": "/review/{queue}/",
    "review-item": "/review/{queue}/items/1/",
    "review-line": "/review/{queue}/items/1/line/",
    "review-agreement": "/review/{queue}/agreement/",
}
RESEARCH = {
    "run-reply": "/runs/{run}/reply/",
    "run-hand-over": "/runs/{run}/hand-over/",
    "run-limits": "/runs/{run}/limits/",
    "run-fork": "/runs/{run}/fork/",
    "query": "/query/",
    "query-unit": "/query/unit/",
    "query-command": "/query/command/",
    "imports": "/imports/",
    "run-shares": "/runs/{run}/shares/",
    "comments-people": "/comments/people/",
    "review-new": "/review/new/",
    "run-review": "/runs/{run}/review/",
    "evaluation-new": "/evaluations/new/",
    "sweep-new": "/sweeps/new/",
    "label-check-new": "/labels/{label}/check/",
    "run-check-new": "/runs/{run}/check/new/",
}
WRITE = {
    "query": "/query/",
    "run-shares": "/runs/{run}/shares/",
    "run-stop": "/runs/{run}/stop/",
    "run-try-again": "/runs/{run}/try-again/",
    "run-pause": "/runs/{run}/pause/",
    "run-note": "/runs/{run}/note/",
}
ASK = {
    "settings-refresh": "/settings/models/refresh/",
    "settings-index": "/settings/datasets/index/",
    "unit-exemplars": "/units/own/fc/1/exemplars/",
    "settings-job-stop": "/settings/jobs/{job}/stop/",
    "settings-job-resume": "/settings/jobs/{job}/resume/",
    "imports-bring": "/imports/bring/",
    "share-revoke": "/runs/{run}/shares/{share}/revoke/",
    "run-reply-draft": "/runs/{run}/reply/draft/",
    "run-program-stop": "/runs/{run}/reply/stop/",
    "run-take-over": "/runs/{run}/take-over/",
    "comments-start": "/runs/{run}/comments/start/",
    "tags": "/runs/{run}/tags/",
    "comment-edit": "/comments/{comment}/edit/",
    "comment-delete": "/comments/{comment}/delete/",
    "thread-reply": "/threads/{thread}/reply/",
    "thread-resolve": "/threads/{thread}/resolve/",
    "review-close": "/review/{queue}/close/",
    "sweep-pause": "/sweeps/{sweep}/pause/",
    "sweep-resume": "/sweeps/{sweep}/resume/",
    "sweep-stop": "/sweeps/{sweep}/stop/",
    "sweep-retry": "/sweeps/{sweep}/retry/",
    "sweep-change": "/sweeps/{sweep}/change/",
    "evaluation-of-source": "/evaluations/source/",
    "evaluation-stop": "/evaluations/{evaluation}/stop/",
    "evaluation-resume": "/evaluations/{evaluation}/resume/",
    "evaluation-repair": "/evaluations/{evaluation}/repair/",
    "evaluation-people": "/evaluations/{evaluation}/people/",
    "evaluation-delete": "/evaluations/{evaluation}/delete/",
    "check-finish": "/checks/{check}/finish/",
}
"""What a researcher may ask of a worker, or say, or close of their own."""
ADMIN = {
    "settings-models-add": "/settings/models/add/",
    "settings-models-remove": "/settings/models/{model}/remove/",
    "settings-datasets-add": "/settings/datasets/add/",
    "settings-datasets-remove": "/settings/datasets/{dataset}/remove/",
    "settings-people-invite": "/settings/people/invite/",
    "settings-people-revoke": "/settings/people/invitations/1/revoke/",
    "settings-people-role": "/settings/people/1/role/",
    "settings-people-active": "/settings/people/1/active/",
    "settings-people-link": "/settings/people/1/link/",
    "settings-people-remove": "/settings/people/1/remove/",
}
"""What makes a worker read a place that somebody names, and the other way round."""
SHARED = {
    "shared": "/shared/{token}/",
    "shared-image": f"/shared/{{token}}/images/{KEY}.png",
    "shared-thumbnail": f"/shared/{{token}}/images/{KEY}/thumb-160.webp",
}
"""What anybody may open who has a link that is good."""
ADMIN_READ = {
    "settings-shares": "/settings/shares/",
    "settings-people": "/settings/people/",
    "settings-audit": "/settings/audit/",
    "settings-audit-file": "/settings/audit/audit.csv",
}
"""What only an admin may read."""


REVIEW = {
    "review-take": "/review/{queue}/items/1/take/",
    "review-hold": "/review/{queue}/items/1/hold/",
    "review-save": "/review/{queue}/items/1/save/",
    "review-submit": "/review/{queue}/items/1/submit/",
    "review-decline": "/review/{queue}/items/1/decline/",
    "pairwise-answer": "/pairwise/{trial}/answer/",
    "pairwise-undo": "/pairwise/{trial}/undo/",
    "pairwise-of-evaluation": "/pairwise/evaluation/{evaluation}/",
    "pairwise-close": "/pairwise/{trial}/close/",
    "pairwise-ask": "/pairwise/{trial}/ask/",
    "pairwise-stop": "/pairwise/{trial}/judges/1/stop/",
    "check-answer": "/checks/{check}/answer/",
    "check-undo": "/checks/{check}/undo/",
    "review-undo": "/review/{queue}/undo/",
    "review-final": "/review/{queue}/items/1/final/",
}
"""What takes a reviewer, or an admin."""
REVIEW_READ = {
    "review-next": "/review/{queue}/next/",
    "review-ahead": "/review/{queue}/items/1/ahead/",
    "pairwise-new": "/pairwise/new/",
    "pairwise-judge": "/pairwise/{trial}/judge/",
    "check-judge": "/checks/{check}/judge/",
}


KEEP = {
    "view-save": "/runs/views/",
    "view-rename": "/runs/views/{view}/",
    "view-delete": "/runs/views/{view}/delete/",
    "runs-bulk": "/runs/act/",
    "exports-make": "/exports/make/",
    "notifications-read": "/notifications/read/",
    "exports-delete": "/exports/{export}/delete/",
    "settings-tokens-revoke": "/settings/tokens/1/revoke/",
    "settings-you-name": "/settings/you/name/",
    "settings-you-password": "/settings/you/password/",
    "settings-you-sessions": "/settings/you/sessions/",
    "settings-you-connect": "/settings/you/connect/",
    "settings-you-disconnect": "/settings/you/disconnect/",
}
"""What every member may send; what it does to others' things is asked further in."""

NAMED = READ | RESEARCH | WRITE | ASK | ADMIN | KEEP | REVIEW | REVIEW_READ | ADMIN_READ


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner)


@pytest.fixture
def ids(run: Run) -> dict[str, int]:
    """What stands in the addresses."""
    model = VisionModelRow.objects.create(name="hf:own", revision="1", added=timezone.now())
    own = VisionModelRow.objects.create(name="own")
    layer = Layer.objects.create(model=own, position=0, name="fc", kind="logit", units=2)
    unit = Unit.objects.create(layer=layer, number=1)
    label = Label.objects.create(text="red", source="person")
    label.units.add(unit)
    dataset = Dataset.objects.create(key="folder:/own", label="own", added=timezone.now())
    view = SavedView.objects.create(owner=User.objects.create_user("leaver"), name="theirs")
    job = Job.objects.create(kind="index", subject="folder:/own", options={"model": "hf:own", "layers": ["fc"]})
    export = Export.objects.create(job=Job.objects.create(kind="export"), what="runs", format="csv")
    return {
        "run": run.pk,
        "export": export.pk,
        "model": model.pk,
        "dataset": dataset.pk,
        "job": job.pk,
        "view": view.pk,
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
