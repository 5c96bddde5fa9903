"""A whole run by a person on the real laboratory: toybox's network, renderer and sandbox. Then an agent goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Backbone, HumanReply, Run
from experiments.runs.human.reference import EXAMPLES
from tests.support.builders import make_run
from tests.support.quick_laboratory import QUICK_IMAGES
from workers.jobs import laboratory as place
from workers.jobs import lease

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def laboratory(quick_state_copy: Path, settings: Any) -> Iterator[None]:
    settings.STATE, settings.LAB_DATASET_IMAGES = quick_state_copy, QUICK_IMAGES
    place.build_laboratory.cache_clear()
    yield
    place.build_laboratory.cache_clear()


def played(run: Run) -> Run:
    """As a worker plays it, until it ends or waits."""
    from workers.jobs.run_round import execute_round

    while claimed := lease.claim(run.pk):
        with lease.hold_lease(claimed):
            execute_round(claimed, Flag())
    return Run.objects.get(pk=run.pk)


def write(client: Client, run: Run, **fields: Any) -> Run:
    """Write and send a round on the page, and have it played."""
    version = HumanReply.objects.filter(run=run, round=run.rounds + 1).values_list("version", flat=True).first() or 0
    form = {"round": run.rounds + 1, "version": version, "what": "experiment", **fields}
    answer = client.post(f"/runs/{run.pk}/reply/", form)
    assert answer.status_code == 302, answer.content.decode()
    return played(run)


def test_a_person_finds_out_what_a_unit_responds_to(as_owner: Client, owner: User) -> None:
    run = played(make_run(owner, backbone="person", unit=12))
    for number, example in enumerate(EXAMPLES, 1):
        run = write(as_owner, run, program=example.code)
        experiment = run.experiments.get(number=number)
        assert (experiment.status, experiment.error) == ("ok", ""), example.name
        assert experiment.observation_count > 0
    origins = set(run.observations.values_list("origin", flat=True))
    assert origins == {"exemplar", "generated", "original", "edited"}
    assert run.exemplar_mean is not None

    first, *later = (event.content for event in run.events.filter(kind="result").order_by("seq"))
    assert len(first.ordinary_images) == 9
    assert not any(result.ordinary_images for result in later)
    assert not {each.image for each in first.ordinary_images} & set(run.observations.values_list("image_id", flat=True))
    assert "Random ordinary images of the dataset" in as_owner.get(f"/runs/{run.pk}/").content.decode()

    run = write(as_owner, run, program="def run_experiment(system, tools):\n    tools.text2image([])\n")
    failed = run.experiments.get(number=5)
    assert failed.status in {"tool_error", "program_error"}
    page = as_owner.get(f"/runs/{run.pk}/").content.decode()
    assert 'data-line="2"' in page
    assert "tools.text2image([])" in page

    conclusion = {"what": "conclusion", "description": "It responds to sunsets.", "labels": "sunset\nred sky"}
    run = write(as_owner, run, **conclusion)
    assert (run.status, run.labels) == ("concluded", ["sunset", "red sky"])
    assert list(run.label_set.values_list("text", "source")) == [("sunset", "run"), ("red sky", "run")]
    assert {event.payload["by_person"] for event in run.events.filter(kind="reply")} == {True}


@pytest.mark.more
def test_the_scripted_scientist_goes_on_from_what_a_person_found(as_owner: Client, owner: User) -> None:
    Backbone.objects.create(key="scripted", label="Scripted scientist", available=True)
    run = played(make_run(owner, backbone="person", unit=12))
    run = write(as_owner, run, program=EXAMPLES[0].code, prose="The exemplars first.")
    as_owner.post(f"/runs/{run.pk}/hand-over/", {"backbone": "scripted"})
    run = played(run)
    assert run.status == "concluded"
    authors = [event.payload["by_person"] for event in run.events.filter(kind="reply").order_by("seq")]
    assert authors[0] is True
    assert not any(authors[1:])
    assert run.labels
