"""A model whose units have pages, and a run whose subject is not told."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from experiments.models import Run, VisionModelRow
from tests.support.api_world import World, fill
from tests.support.blind_runs import blind_run
from tests.support.people import member
from tests.support.unit_pages import make_resnet


@pytest.fixture
def resnet(db: None) -> VisionModelRow:
    return make_resnet()


@pytest.fixture
def first() -> User:
    """An admin who reviews: no page is closed to them."""
    return member("first", "ADMIN")


@pytest.fixture
def world(owner: User) -> World:
    return fill(owner)


@pytest.fixture
def run(owner: User, world: World) -> Run:
    return blind_run(owner)
