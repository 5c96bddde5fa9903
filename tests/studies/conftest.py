"""A unit with a label and exemplars, a run that concluded, and a study of both."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from experiments.models import Dataset, Study
from tests.support.bundles import HOSTILE, full_run
from tests.support.studies import make_study
from tests.support.unit_pages import labelled, layer_of, make_resnet, measured


@pytest.fixture
def study(owner: User) -> Study:
    resnet = make_resnet()
    unit = labelled(layer_of(resnet), 7, "red balls")
    measured(unit)
    return make_study(owner, full_run(owner), unit)


@pytest.fixture
def hostile(owner: User) -> Study:
    """The same with words that would run, were they not escaped."""
    resnet = make_resnet()
    unit = labelled(layer_of(resnet), 7, HOSTILE)
    measured(unit)
    Dataset.objects.update(label=HOSTILE)
    row = make_study(owner, full_run(owner, HOSTILE), unit, title=HOSTILE[:120])
    row.text = HOSTILE
    row.save()
    row.items.update(caption=HOSTILE)
    return row
