"""Run the tests of rows, claims and delivery on a private PostgreSQL: `python -m tests.support.on_postgres`.

Called by `make test-more`. Arguments are pytest's. Exits 0 with a sentence where PostgreSQL is not installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tests import ROOT
from tests.support.postgres import MISSING, Cluster, programs
from tests.support.second_look import main

FILES = (
    # Their SQL or locks differ from SQLite's
    "core/test_audit",
    "core/test_transcript",
    "exchange/test_bundles",
    "house/test_migrations",
    "jobs/test_images",
    "jobs/test_lease",
    "jobs/test_recovery",
    "maintenance/test_backup",
    "reviews/test_writing",
    "runs/test_steering",
    "search/test_finding",
    "search/test_opinions",
    # Their queries are long, or count
    "accounts/test_audit_page",
    "accounts/test_team",
    "accounts/test_throttle",
    "api/test_api",
    "comments/test_comments",
    "core/test_blindness",
    "core/test_sessions",
    "core/test_system_names",
    "core/test_tagging",
    "exchange/test_bulk",
    "gallery/test_image_page",
    "gallery/test_pages",
    "house/test_seeding",
    "installation/test_queue_status",
    "jobs/test_long",
    "maintenance/test_verification",
    "pairwise/test_judging",
    "reviews/test_agreement_page",
    "runs/test_comparing",
    "runs/test_forks",
    "runs/test_human_api",
    "runs/test_lists",
    "sharing/test_links",
    "units/test_pages",
)


def list_paths(names: Sequence[str] = FILES) -> list[str]:
    """Return the paths of these test files. Raises SystemExit naming those that do not exist."""
    paths = [ROOT / "tests" / f"{name}.py" for name in names]
    if missing := [str(path.relative_to(ROOT)) for path in paths if not path.is_file()]:
        raise SystemExit(f"tests/support/on_postgres.py lists files that do not exist: {', '.join(missing)}.")
    return [str(path) for path in paths]


def run(arguments: list[str]) -> int:
    """Start a cluster, run the files there, remove it, and return the exit code."""
    paths = list_paths()
    if programs() is None:
        print(f"No test ran on PostgreSQL. {MISSING}")
        return 0
    cluster = Cluster()
    try:
        cluster.start()
        os.environ["MAIA_DATABASE_URL"] = cluster.url("postgres")
        return main([*arguments, *paths])
    finally:
        cluster.remove()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
