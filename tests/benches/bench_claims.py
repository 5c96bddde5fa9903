"""Claims from a queue of 10,000 runs on PostgreSQL, beside the bare SQL of the same kind; and how soon a person comes
to their turn who asks one thing after somebody else asked a thousand.

Run it on PostgreSQL alone: the queue of SQLite is one machine's.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import psycopg
import pytest

from tests import ROOT
from tests.support.postgres import Cluster

QUEUED, CLAIMS = 10_000, 400
BARE = """
WITH next AS (
    SELECT id FROM experiments_run
    WHERE status IN ('queued', 'running') AND due <= now() AND (lease_expires IS NULL OR lease_expires <= now())
        AND run_queue_id = %s
    ORDER BY status DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE experiments_run SET status = 'running', lease_worker = 'bare', lease_expires = now() + interval '30 seconds',
    fence = fence + 1, claims = claims + 1
FROM next WHERE experiments_run.id = next.id RETURNING experiments_run.*
"""


def main() -> None:
    """What a process of its own measures on the database of its settings."""
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import connection

    from experiments.models import Run, RunQueue
    from workers.jobs.claims import Claimer

    call_command("migrate", verbosity=0)
    people = [User.objects.create(username=name) for name in ("ada", "ben")]
    run_queues = [RunQueue.objects.create(owner=each) for each in people]
    fill(people, run_queues)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE experiments_run")
    claimer = Claimer(list)
    ours = timed(claimer.claim)
    statements = note_statements(claimer.claim)
    with psycopg.connect(dsn(connection.settings_dict), autocommit=True) as bare:
        same = timed(lambda: repeat(bare, statements))
        theirs = timed(lambda: bare.execute(BARE, [run_queues[0].pk]).fetchone())
    print(f"\n{QUEUED:,} queued runs of 2 people, {CLAIMS} claims{'median':>12}{'p95':>11}")
    for name, times in (
        ("a worker's claim", ours),
        (f"its {len(statements)} statements without Django", same),
        ("one statement that takes the first of one queue", theirs),
    ):
        ratio = f"{p95(ours) / p95(times):8.1f} x"
        print(f"{name:47}{statistics.median(times) * 1000:8.1f} ms{p95(times) * 1000:8.1f} ms{ratio}")
    Run.objects.all().delete()
    print(f"A thousand of ada's, then one of ben's: ben's comes as claim {turn_of(people, run_queues)} after he asked")


def note_statements(claim: Callable[[], object]) -> list[tuple]:
    """What a claim asks of the database, in order."""
    from django.db import connection

    found: list[tuple] = []

    def note(execute: Callable, sql: str, params: object, many: bool, context: dict) -> object:
        found.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        claim()
    return found


def repeat(bare: psycopg.Connection, statements: list[tuple]) -> bool:
    """The same again, in one transaction, with what is found fetched."""
    with bare.transaction():
        for sql, params in statements:
            asked = bare.execute(sql, params)
            if asked.description:
                asked.fetchall()
    return True


def fill(people: list, run_queues: list) -> None:
    from experiments.models import Run

    same = {"task": "describe", "question": "What?", "model": "toybox", "layer": "layer4", "backbone": "scripted"}
    Run.objects.bulk_create(
        Run(owner=people[place % 2], run_queue=run_queues[place % 2], unit=place % 80, **same)
        for place in range(QUEUED)
    )


def turn_of(people: list, run_queues: list) -> int:
    from experiments.models import Run
    from workers.jobs import claims

    same = {"task": "describe", "question": "What?", "model": "toybox", "layer": "layer4", "backbone": "scripted"}
    Run.objects.bulk_create(Run(owner=people[0], run_queue=run_queues[0], unit=place, **same) for place in range(1000))
    claimer = claims.Claimer(list)
    for _ in range(25):
        run = claimer.claim()
        assert run
        claims.charge_queue(run, 3.0)
    Run.objects.create(owner=people[1], run_queue=run_queues[1], unit=0, **same)
    for place in range(1, 100):
        run = claimer.claim()
        assert run
        claims.charge_queue(run, 3.0)
        if run.owner_id == people[1].pk:
            return place
    return 0


def timed(claim: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(CLAIMS):
        began = time.perf_counter()
        assert claim()
        times.append(time.perf_counter() - began)
    return times


def p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


def dsn(settings: dict) -> str:
    return f"host={settings['HOST']} user={settings['USER']} dbname={settings['NAME']}"


@pytest.mark.bench
def test_a_claim_from_a_long_queue(postgres: Cluster) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
    own |= {"MAIA_DATABASE_URL": postgres.create("claims"), "MAIA_STATE": str(postgres.home) + "-state"}
    own |= {"DJANGO_SETTINGS_MODULE": "maia_web.settings"}
    code = "import django; django.setup(); from tests.benches.bench_claims import main; main()"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, env=own, check=True)
