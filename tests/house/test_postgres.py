"""The tests of rows, claims and delivery once more, on a real PostgreSQL where one is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT

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
)
"""Files whose SQL or locks differ from SQLite's."""
ALSO = (
    "gallery/test_pages",
    "units/test_pages",
    "runs/test_lists",
    "core/test_tagging",
    "jobs/test_long",
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
)
"""Others that hold there: tried by `make test-more`, since they take as long again."""


def programs() -> Path | None:
    """The folder of PostgreSQL's programs, Debian's or the one on the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def unprivileged() -> dict[str, str]:
    """PostgreSQL refuses to run as root: then it runs as the user `nobody`."""
    return {"user": "nobody"} if os.geteuid() == 0 else {}


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a private cluster on a socket, with no port and no password."""
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL is not installed: `apt-get install postgresql` (or your system's package) brings it.")
    home = Path(tempfile.mkdtemp(prefix="maia-pg-", dir="/tmp"))
    if who := unprivileged().get("user"):
        os.chown(home, pwd.getpwnam(who).pw_uid, -1)
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}

    def call(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, env=environment, cwd=home, **unprivileged())

    call(f"{folder}/initdb", "-D", f"{home}/data", "-U", "maia", "--auth=trust", "--no-sync", "-E", "UTF8")
    server = [f"{folder}/postgres", "-D", f"{home}/data", "-k", str(home), "-c", "listen_addresses=", "-F"]
    with subprocess.Popen(
        server, env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **unprivileged()
    ) as process:
        wait_for(home / ".s.PGSQL.5432", process)
        yield f"postgres://maia@{str(home).replace('/', '%2F')}/postgres"
        process.terminate()
    shutil.rmtree(home, ignore_errors=True)


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    while not path.exists():
        assert process.poll() is None, "postgres did not start"
        time.sleep(0.05)


@pytest.mark.timeout(480)
def test_it_keeps_its_promises_on_postgresql(postgres: str) -> None:
    passes(postgres, ON_POSTGRES)


@pytest.mark.more
def test_so_does_the_rest(postgres: str) -> None:
    passes(postgres, ALSO)


def passes(postgres: str, names: tuple[str, ...]) -> None:
    files = [str(ROOT / "tests" / f"{name}.py") for name in names]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not bench and not more", "-p", "no:cacheprovider", *files]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "MAIA_DATABASE_URL": postgres}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
