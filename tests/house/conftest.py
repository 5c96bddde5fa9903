"""A run, and a row of every other kind that stands in an address."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from experiments.models import Run
from tests.support.address_rows import make_ids
from tests.support.builders import make_run


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner)


@pytest.fixture
def ids(run: Run) -> dict[str, int]:
    """What stands in the addresses."""
    return make_ids(run)
