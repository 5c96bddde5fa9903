"""Made-up rows hang together as real ones do, and never mix with real ones unasked."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Experiment, Label, Observation, Run, SearchText
from experiments.search import finding
from tests.support.builders import make_run
from tests.support.seeding import images
from tests.support.seeding.__main__ import main

pytestmark = pytest.mark.django_db(transaction=True)


def test_everything_hangs_together(as_owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "GROUNDS", ("#24451f",))
    main(["observations", "205", "--runs", "3"])
    main(["observations", "20"])
    assert (Run.objects.count(), Observation.objects.count()) == (4, 225)
    run = Run.objects.order_by("pk")[1]
    assert run.observation_count == run.observations.count()
    assert run.experiment_count == run.experiments.count()
    assert Experiment.objects.filter(best_activation=None).count() == 0
    assert Observation.objects.filter(change=None, origin="edited").count() == 0
    assert SearchText.objects.filter(kind="title").count() == 225
    keys = finding.find(("red",), finding.SearchScope(kind="title")).keys
    assert len(keys) == Observation.objects.filter(title__contains="red").count()
    assert Label.objects.filter(units=None).count() == 0
    assert as_owner.get(f"/runs/{run.pk}/").status_code == 200
    assert (
        run.observations.order_by("-activation")[0].title
        in as_owner.get(f"/experiments/?run={run.pk}&sort=strongest").content.decode()
    )


def test_it_refuses_a_database_with_real_runs(owner: User) -> None:
    make_run(owner)
    with pytest.raises(SystemExit, match=r"holds real runs.*--force"):
        main(["observations", "10"])
    assert Observation.objects.count() == 0


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_nonsense_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["observations", number])
    assert re.search("whole number of 1 or more|required", capsys.readouterr().err)
