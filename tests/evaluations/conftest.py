"""Evaluations that these tests start from."""

from __future__ import annotations

from random import Random

import pytest
from django.contrib.auth.models import User

from experiments.models import Backbone, Evaluation, EvaluationKind, Image, LabelCheck, Run
from tests.support import trials
from tests.support.checked_labels import checks, done, runs, units
from tests.support.pictures import stored
from tests.support.seeding import evaluations

__all__ = ["checks", "done", "runs", "units"]


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
