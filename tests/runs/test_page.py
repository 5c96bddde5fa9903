"""The run page and its Stop button."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core import transcript
from experiments.models import Run
from tests.support.builders import experiment, make_run, replied, started
from tests.support.pictures import logged, seen
from workers.record.events import Ended
from workers.record.replies import Conclusion
from workers.record.statuses import Status

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner)


def tell(run: Run) -> None:
    """A short, whole story."""
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "reply", replied(code="tools.display('hello')"))
    transcript.append(run.pk, "experiment", experiment())
    transcript.append(run.pk, "result", logged(seen("a red ball", 38.4, "red"), exemplar_mean=30.0))
    transcript.append(run.pk, "concluded", Ended("", Conclusion("It likes red.", ("red balls",))))


def test_a_fresh_run_says_what_it_waits_for(as_owner: Client, run: Run) -> None:
    text = as_owner.get(f"/runs/{run.pk}/").content.decode()
    assert "Waiting for a worker" in text
    assert 'data-last="0"' in text
    assert "data-complete" not in text


def test_a_whole_run_is_on_the_page_without_a_script(as_owner: Client, run: Run) -> None:
    tell(run)
    text = as_owner.get(f"/runs/{run.pk}/").content.decode()
    for words in ("What?", "Round 1", "Experiment 1", "a red ball", "38.40", "It likes red.", "red balls"):
        assert words in text
    for seq in (1, 2, 3, 4, 5):
        assert f'id="e{seq}"' in text
    assert "data-complete" in text
    assert "style=" not in text
    assert "<script>" not in text


def test_it_says_plainly_that_the_scripted_scientist_is_no_language_model(as_owner: Client, run: Run) -> None:
    tell(run)
    assert "a program without a language model" in as_owner.get(f"/runs/{run.pk}/").content.decode().replace("\n", " ")


def test_stopping_a_run_that_waits_ends_it_at_once(as_owner: Client, run: Run) -> None:
    response = as_owner.post(f"/runs/{run.pk}/stop/")
    assert response["Location"] == f"/runs/{run.pk}/"
    run.refresh_from_db()
    assert run.status == Status.CANCELLED
    assert run.reason == "Stopped by owner."
    assert [event.kind for event in run.events.all()] == ["cancelled"]


def test_stopping_a_run_that_a_worker_holds_leaves_the_end_to_the_worker(as_owner: Client, run: Run) -> None:
    lease = {"status": Status.RUNNING, "lease_worker": "w", "lease_expires": timezone.now() + timedelta(seconds=30)}
    Run.objects.filter(pk=run.pk).update(**lease)
    response = as_owner.post(f"/runs/{run.pk}/stop/", headers={"HX-Request": "true"})
    assert response.status_code == 204
    run.refresh_from_db()
    assert run.cancel_requested
    assert run.status == Status.RUNNING
    assert run.events.count() == 0
    assert "Stopping…" in as_owner.get(f"/runs/{run.pk}/").content.decode()


def test_stopping_a_run_that_has_ended_changes_nothing(as_owner: Client, run: Run) -> None:
    tell(run)
    as_owner.post(f"/runs/{run.pk}/stop/")
    run.refresh_from_db()
    assert run.status == Status.CONCLUDED
    assert run.events.count() == 5


def test_a_failed_run_says_what_happened_what_was_kept_and_what_to_do(as_owner: Client, run: Run) -> None:
    transcript.append(run.pk, "failed", Ended("The key was refused."))
    text = as_owner.get(f"/runs/{run.pk}/").content.decode()
    assert "The key was refused." in text
    assert "What was kept:" in text
    assert f"/query/?like={run.pk}" in text
