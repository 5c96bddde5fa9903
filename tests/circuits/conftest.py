"""A model whose units make circuits."""

from __future__ import annotations

import pytest

from experiments.models import VisionModelRow
from tests.support.unit_pages import make_resnet


@pytest.fixture
def resnet(db: None) -> VisionModelRow:
    return make_resnet()
