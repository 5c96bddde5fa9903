"""A database of the version before sweeps is migrated to now, whole, and its pages open; on PostgreSQL too, see
house/test_postgres."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.earlier_database import PAGES, upgrade

pytestmark = pytest.mark.more


def test_a_database_of_the_version_before_is_taken_over_whole(tmp_path: Path) -> None:
    said = upgrade({"MAIA_STATE": str(tmp_path)})
    assert "All is well: 5 runs, 14 events, 3 images." in said
    assert f"{len(PAGES) + 6} pages open" in said
