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

ON_POSTGRES = (
    "test_transcript",
    "test_jobs_lease",
    "test_jobs_sweep",
    "test_jobs_images",
    "test_migrations",
    "test_search",
    "test_search_opinions",
    "test_transfer",
    "test_review",
    "test_audit",
    "test_steering",
)
"""Files whose SQL or locks differ from SQLite's."""
ALSO = (
    "test_gallery_page",
    "test_units",
    "test_filters",
    "test_tagging",
    "test_chores",
    "test_gallery_image",
    "test_seed",
    "test_api",
    "test_comments",
    "test_choices",
    "test_agreement_page",
    "test_compare",
    "test_audit_page",
    "test_sharing_links",
    "test_team",
    "test_sessions",
    "test_throttle",
    "test_forks",
    "test_transfer_bulk",
    "test_api_turns",
    "test_review_names",
    "test_review_blindness",
)
"""Others that hold there: tried by `make bench`, since they take as long again."""


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


@pytest.mark.bench
def test_so_does_the_rest(postgres: str) -> None:
    passes(postgres, ALSO)


def passes(postgres: str, names: tuple[str, ...]) -> None:
    here = Path(__file__).parent
    files = [str(here / f"{name}.py") for name in names]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not bench", "-p", "no:cacheprovider", *files]
    done = subprocess.run(
        command, cwd=here.parent, env={**os.environ, "MAIA_DATABASE_URL": postgres}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
