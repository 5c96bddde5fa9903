"""A backup, and a database of an earlier version, on a real PostgreSQL where one is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.backup_rows import read_rows
from tests.support.earlier_database import upgrade
from tests.support.postgres import Cluster

pytestmark = pytest.mark.more


def test_a_backup_of_sqlite_is_restored_on_postgresql(postgres: Cluster, migrated: Path, tmp_path: Path) -> None:
    """And what was restored there makes the same backup again; new rows get keys of their own."""
    shutil.copy(migrated / "maia.sqlite3", tmp_path)
    there = {"MAIA_STATE": str(tmp_path / "there"), "MAIA_DATABASE_URL": postgres.create("restored")}
    here = {"MAIA_STATE": str(tmp_path)}

    def call(where: dict[str, str], *words: str) -> str:
        own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
        done = subprocess.run([sys.executable, *words], cwd=ROOT, env=own | where, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    call(here, "-m", "tests.support.seeding", "observations", "300")
    call(here, "manage.py", "backup", str(tmp_path / "one.maia"))
    call(there, "manage.py", "migrate", "-v0")
    call(there, "manage.py", "restore", str(tmp_path / "one.maia"))
    call(there, "manage.py", "backup", str(tmp_path / "two.maia"))
    first, second = read_rows(tmp_path / "one.maia"), read_rows(tmp_path / "two.maia")
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    call(there, "-m", "tests.support.seeding", "observations", "300", "--force")


def test_a_database_of_the_version_before_is_taken_over_whole(postgres: Cluster, tmp_path: Path) -> None:
    said = upgrade({"MAIA_STATE": str(tmp_path), "MAIA_DATABASE_URL": postgres.create("earlier")})
    assert "All is well: 5 runs, 14 events, 3 images." in said
