"""Runs on functions that a worker plays into the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workers.jobs import laboratory as place


@pytest.fixture
def _laboratory(settings: Any, tmp_path: Path) -> Any:
    settings.STATE = tmp_path
    place.build_laboratory.cache_clear()
    yield
    place.build_laboratory.cache_clear()
