"""A model with two layers, who may ask, and sweeps of it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from experiments.models import Layer, Sweep
from tests.support.sweeps import create_sweep_runs, make_layers, start


@pytest.fixture
def layers(db: None) -> list[Layer]:
    return make_layers()


@pytest.fixture
def swept(owner: User, layers: list[Layer], redis_url: str) -> Sweep:
    """A sweep of eight units whose runs are there."""
    return create_sweep_runs(start(owner))
