"""What commands that work in the foreground share: a database that is there, leave to fetch what is not;
how far long work is, on one line of a terminal that replaces itself, and Ctrl+C, which ends it at a safe place."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from experiments.core.schema_version import refuse_older_schema
from workers.errors import Cancelled, MaiaError

EVERY = 0.1
"""Seconds between two changes of the line."""
STOPPED = 130
"""What the shell is told of Ctrl+C."""
WIDEST = 110
"""A line that is wider than the terminal would not replace itself."""


class PreparedCommand(BaseCommand):
    """A command that needs the database; on a fresh state folder it makes it. What goes wrong by our own account is
    told in a sentence."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        prepare()
        try:
            return super().execute(*args, **options)
        except MaiaError as error:
            raise CommandError(str(error)) from error


class FetchingCommand(PreparedCommand):
    """One that needs models too, and has the option `--fetch`; call `super().add_arguments`."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--fetch", action="store_true", help="fetch weights that are not here from the hub; without it, nothing is"
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        from workers.jobs.laboratory import fetching

        with fetching(allowed=options.get("fetch", False)):
            return super().execute(*args, **options)


def prepare() -> None:
    """Make the tables of a database that has none. Raises CommandError for one of another version, or none at all."""
    settings.STATE.mkdir(parents=True, exist_ok=True)
    try:
        refuse_older_schema(connection)
        executor = MigrationExecutor(connection)
        due = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if due and not executor.loader.applied_migrations:
            call_command("migrate", verbosity=0, interactive=False)
            return
    except DatabaseError as error:
        raise CommandError(f"The database cannot be used: {error}. See MAIA_DATABASE_URL and MAIA_STATE.") from error
    if due:
        raise CommandError(
            f"The database lacks {len(due)} changes of this version, the first of them {due[0][0]}. "
            "Stop MAIA Web, then run: python manage.py migrate"
        )


class ProgressLine:
    """A `Progress` for a terminal: what is done, how much of it. A pipe sees nothing of it."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.shown = 0.0
        self.open = False
        """Whether the cursor stands behind words of ours."""

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.stop.is_set():
            raise Cancelled("Stopped by Ctrl+C.")
        now = time.monotonic()
        if sys.stderr.isatty() and (done == total or now - self.shown > EVERY):
            self.shown, self.open = now, done != total
            count = f": {done:,} of {total:,}"
            print(f"\r\033[K{what[:WIDEST]}{count}", end="" if self.open else "\n", file=sys.stderr, flush=True)

    @contextmanager
    def until_ctrl_c(self, kept: str) -> Iterator[None]:
        """Within the block Ctrl+C lets the work finish its step; then a CommandError says what is kept of it.

        What is printed after it begins on a line of its own.
        """
        before = signal.signal(signal.SIGINT, lambda *_: self.stop.set())
        try:
            yield
        except Cancelled:
            raise CommandError(f"Stopped. {kept}".strip(), returncode=STOPPED) from None
        finally:
            signal.signal(signal.SIGINT, before)
            if self.open:
                print(file=sys.stderr, flush=True)
                self.open = False
