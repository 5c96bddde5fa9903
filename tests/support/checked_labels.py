"""Label checks that tests of theirs, and of evaluations, start from."""

from __future__ import annotations

from random import Random

import pytest
from django.contrib.auth.models import User

from experiments.models import CheckStatus, LabelCheck, Run, Unit
from tests.support import trials
from tests.support.builders import make_run
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
