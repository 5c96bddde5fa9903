"""Units, checks and evaluations that these tests start from."""

from __future__ import annotations

from random import Random

import pytest
from django.contrib.auth.models import User

from experiments.models import Backbone, CheckStatus, Evaluation, EvaluationKind, Image, LabelCheck, Run, Unit
from tests.support import trials
from tests.support.builders import make_run
from tests.support.pictures import stored
from tests.support.seeding import evaluations


@pytest.fixture
def units(db: None) -> list[Unit]:
    return [trials.unit(number) for number in range(6)]


@pytest.fixture
def checks(units: list[Unit]) -> list[LabelCheck]:
    """One in every status."""
    rng = Random(1)
    pairs = zip(units, CheckStatus, strict=True)
    return [evaluations.make_check(unit, f"label {n}", status, rng) for n, (unit, status) in enumerate(pairs)]


@pytest.fixture
def done(checks: list[LabelCheck]) -> LabelCheck:
    return next(each for each in checks if each.status == CheckStatus.DONE)


@pytest.fixture
def runs(owner: User, checks: list[LabelCheck]) -> list[Run]:
    found = []
    for check in checks:
        conclusion = {"labels": [check.text], "description": "It responds to it."}
        found.append(
            make_run(owner, unit=check.unit.number, status="concluded", conclusion=conclusion, label_check=check)
        )
    return found


@pytest.fixture
def evaluation(owner: User, checks: list[LabelCheck], runs: list[Run]) -> Evaluation:
    """Of synthetic neurons; stopped half-way."""
    return evaluations.make_evaluation(owner, EvaluationKind.SYNTHETIC, checks, runs, Random(2), unfinished=True)


@pytest.fixture
def every_kind(owner: User, checks: list[LabelCheck], runs: list[Run]) -> list[Evaluation]:
    keys = [stored(colour) for colour in trials.COLOURS]
    pictures = [(image, image.key) for image in Image.objects.filter(pk__in=keys)]
    return [
        evaluations.make_evaluation(owner, kind, checks, runs, Random(3), pictures, unfinished=kind == "units")
        for kind in EvaluationKind
    ]


@pytest.fixture
def scripted(db: None) -> Backbone:
    return Backbone.objects.create(key="scripted", label="Scripted scientist")
