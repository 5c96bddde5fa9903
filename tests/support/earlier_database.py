"""A database as the version before sweeps left it: `python -m tests.support.earlier_database load`, after migrating to
0007; `… open`, after migrating to now, opens its pages.

`before_sweeps.sql` holds the rows of runs that version played (one concluded, queued, under way, paused and waiting),
written for both databases alike but for bytes, which each spells otherwise.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import django

from tests import ROOT

ROWS = Path(__file__).with_name("before_sweeps.sql")
BEFORE = "0007"
PAGES = (
    "/",
    "/runs/",
    "/experiments/",
    "/units/",
    "/search/?q=crimson",
    "/settings/workers/",
    "/review/",
    "/sweeps/",
    "/evaluations/1/",
)


def upgrade(where: Mapping[str, str]) -> str:
    """Make such a database where the environment says, migrate it to now, verify it and open its pages. Returns what
    was said of it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
    said = ""
    for words in (
        ("manage.py", "migrate", "experiments", BEFORE, "-v0"),
        ("manage.py", "migrate", "auth", "-v0"),
        ("-m", "tests.support.earlier_database", "load"),
        ("manage.py", "migrate", "-v0"),
        ("manage.py", "verify", "--no-images"),
        ("-m", "tests.support.earlier_database", "open"),
    ):
        done = subprocess.run([sys.executable, *words], cwd=ROOT, env={**own, **where}, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        said += done.stdout
    return said


def _load() -> str:
    from django.apps import apps
    from django.core.management.color import no_style
    from django.db import connection, transaction
    from django.db.migrations.recorder import MigrationRecorder

    applied = {name for app, name in MigrationRecorder(connection).applied_migrations() if app == "experiments"}
    assert max(applied).startswith(BEFORE), max(applied)
    statements = re.split(r"(?<=;)\n(?=INSERT INTO)", ROWS.read_text())
    with transaction.atomic(), connection.cursor() as cursor:
        for each in statements:
            is_postgres = connection.vendor == "postgresql"
            cursor.execute(re.sub(r"X'([0-9a-f]*)'", r"'\\x\1'", each) if is_postgres else each)
        # PostgreSQL counts on from there, as it did in the database that they come from
        there = set(connection.introspection.table_names())
        tables = [each for each in apps.get_models(include_auto_created=True) if each._meta.db_table in there]
        for statement in connection.ops.sequence_reset_sql(no_style(), tables):
            cursor.execute(statement)
    return f"{len(statements)} rows\n"


def _open() -> str:
    from django.contrib.auth.models import User
    from django.test import Client

    from experiments.core import notify, transcript
    from experiments.models import Run
    from tests.support.builders import started
    from workers.jobs import lease
    from workers.record.events import Note

    notify.muted.set()
    browser = Client(headers={"host": "127.0.0.1"})
    browser.force_login(User.objects.get())
    pages = [*PAGES, *(run.get_absolute_url() for run in Run.objects.order_by("pk")), "/units/tiny/patches/0/"]
    for page in pages:
        response = browser.get(page)
        assert response.status_code == 200, (page, response.status_code)
        assert "evaluations" not in page or b"Agent, median r" in response.content
    # What was asked before is claimed, what was under way goes on
    queued = lease.claim(Run.objects.get(status="queued").pk)
    assert queued is not None
    transcript.append(queued.pk, "started", started(), fence=queued.fence)
    under_way = Run.objects.get(status="running", started__isnull=False, last_seq__gt=1)
    transcript.append(under_way.pk, "note", Note(1, "owner", "after the update"))
    return f"{len(pages)} pages open\n"


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "maia_web.settings")
    django.setup()
    sys.stdout.write(_load() if sys.argv[1] == "load" else _open())
