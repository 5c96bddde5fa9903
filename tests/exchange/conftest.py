"""A good bundle, for tests that break it."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tests.support.bundles import Files, good_files


@pytest.fixture
def files(owner: User, tmp_path: Path) -> Files:
    """Its members; their run is not here any more."""
    return good_files(owner, tmp_path)
