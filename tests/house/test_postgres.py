"""The tests of rows, claims and delivery once more, on a real PostgreSQL where one is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.backup_rows import read_rows
from tests.support.earlier_database import upgrade
from tests.support.postgres import MISSING, Cluster, programs

ON_POSTGRES = (
    "core/test_transcript",
    "jobs/test_lease",
    "jobs/test_recovery",
    "jobs/test_images",
    "house/test_migrations",
    "search/test_finding",
    "search/test_opinions",
    "exchange/test_bundles",
    "reviews/test_writing",
    "core/test_audit",
    "runs/test_steering",
    "keeping/test_backup",
)
"""Files whose SQL or locks differ from SQLite's."""
ALSO = (
    "gallery/test_pages",
    "units/test_pages",
    "runs/test_lists",
    "core/test_tagging",
    "jobs/test_long",
    "installation/test_waiting",
    "gallery/test_image_page",
    "house/test_seeding",
    "api/test_api",
    "comments/test_comments",
    "pairwise/test_judging",
    "reviews/test_agreement_page",
    "runs/test_comparing",
    "accounts/test_audit_page",
    "sharing/test_links",
    "accounts/test_team",
    "core/test_sessions",
    "accounts/test_throttle",
    "runs/test_forks",
    "exchange/test_bulk",
    "runs/test_human_api",
    "core/test_system_names",
    "core/test_blindness",
    "keeping/test_verification",
)
"""Others that hold there."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Cluster]:
    """A private cluster on a socket, with no port and no password."""
    if programs() is None:
        pytest.skip(MISSING)
    cluster = Cluster()
    cluster.start()
    yield cluster
    cluster.remove()


@pytest.mark.more
@pytest.mark.timeout(480)
def test_it_keeps_its_promises_on_postgresql(postgres: Cluster) -> None:
    passes(postgres.url("postgres"), ON_POSTGRES)


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


@pytest.mark.more
def test_a_database_of_the_version_before_is_taken_over_whole(postgres: Cluster, tmp_path: Path) -> None:
    said = upgrade({"MAIA_STATE": str(tmp_path), "MAIA_DATABASE_URL": postgres.create("earlier")})
    assert "All is well: 5 runs, 14 events, 3 images." in said


@pytest.mark.more
def test_so_does_the_rest(postgres: Cluster) -> None:
    passes(postgres.url("postgres"), ALSO)


def passes(url: str, names: tuple[str, ...]) -> None:
    files = [str(ROOT / "tests" / f"{name}.py") for name in names]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not bench and not more", "-p", "no:cacheprovider", *files]
    # It is no process of those that run tests side by side: what it makes once is its own
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, cwd=ROOT, env=own | {"MAIA_DATABASE_URL": url}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
