"""Exemplars that a run has looked at come to the page of its unit unasked."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core import notify
from experiments.models import Dataset, Layer, Run, UnitProfile, VisionModelRow
from tests.support.builders import make_run
from workers.jobs import unit_profiles


@pytest.fixture
def run(owner: User) -> Run:
    model = VisionModelRow.objects.create(name="toybox", added=timezone.now())
    Layer.objects.create(model=model, position=0, name="layer4", kind="conv", units=96)
    Dataset.objects.create(key="toybox", label="toybox", added=timezone.now())
    return make_run(owner, model="toybox", layer="layer4", unit=7, options={"dataset": "toybox"})


def asked(run: Run, capture) -> tuple[list[int], int]:
    """The units whose pages will show exemplars, and how many jobs were sent for them now."""
    with capture() as callbacks:
        unit_profiles.ask_for(run)
    return list(UnitProfile.objects.values_list("unit__number", flat=True)), len(callbacks)


def test_a_worker_is_asked_for_them_once(run: Run, django_capture_on_commit_callbacks) -> None:
    assert asked(run, django_capture_on_commit_callbacks) == ([7], 1)
    assert asked(run, django_capture_on_commit_callbacks) == ([7], 0)


def test_a_unit_that_the_catalogue_does_not_know_any_more_has_no_page(
    run: Run, django_capture_on_commit_callbacks
) -> None:
    Layer.objects.all().delete()
    assert asked(run, django_capture_on_commit_callbacks) == ([], 0)


def test_without_workers_nobody_is_asked(run: Run, django_capture_on_commit_callbacks, monkeypatch) -> None:
    monkeypatch.setattr(notify.muted, "is_set", lambda: True)
    assert asked(run, django_capture_on_commit_callbacks) == ([], 0)
