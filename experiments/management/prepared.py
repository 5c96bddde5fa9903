"""The common part of commands that work in the foreground: a prepared database, permission to fetch missing parts,
progress on one line of a terminal that replaces itself, and Ctrl+C, which stops at a safe place."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from experiments.core.schema_version import refuse_older_schema
from workers.errors import Cancelled, MaiaError
from workers.record.terminal import escape_controls

EVERY = 0.1
"""Seconds between two updates of the line."""
STOPPED = 130
"""Exit status after Ctrl+C."""
SOON = 60.0
"""Remaining seconds below which no time is shown."""
# Of the words; the counts behind them need some more columns.
WIDEST = 110
"""Maximum width: a line wider than the terminal would not replace itself."""


class EscapedOutput(OutputWrapper):
    """The output of a command, with terminal controls escaped."""

    def write(  # type: ignore[override]
        self, msg: str = "", style_func: Callable[[str], str] | None = None, ending: str | None = None
    ) -> None:
        super().write(escape_controls(msg), style_func, ending)


class PreparedCommand(BaseCommand):
    """A command that needs the database and creates it in a fresh state folder. Expected errors are shown as a
    sentence, and printed text of programs, agents and files cannot control the terminal."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        # Streams may be given by `call_command`, as in tests.
        self.stdout = EscapedOutput(cast("TextIO", options.pop("stdout", None) or self.stdout))
        self.stderr = EscapedOutput(cast("TextIO", options.pop("stderr", None) or self.stderr))
        self.stderr.style_func = self.style.ERROR
        # Before Django's own checks of the database, which fail without tables.
        prepare()
        try:
            return super().execute(*args, **options)
        except MaiaError as error:
            # Expected errors are shown as a sentence, without a traceback.
            raise CommandError(str(error)) from error


class FetchingCommand(PreparedCommand):
    """A command that needs models too, with the option `--fetch`; call `super().add_arguments`."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--fetch", action="store_true", help="fetch weights that are not here from the hub; without it, nothing is"
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        from workers.jobs.laboratory import fetching

        with fetching(allowed=options.get("fetch", False)):
            return super().execute(*args, **options)


def prepare() -> None:
    """Create the tables of an empty database. Raises CommandError for a database of another version, or none at all."""
    settings.STATE.mkdir(parents=True, exist_ok=True)
    with explain_database():
        refuse_older_schema(connection)
        executor = MigrationExecutor(connection)
        due = executor.migration_plan(executor.loader.graph.leaf_nodes())
        # An empty database is created; one with data is changed only by an explicit `migrate`.
        if due and not executor.loader.applied_migrations:
            call_command("migrate", verbosity=0, interactive=False)
            return
    if due:
        raise CommandError(
            f"The database lacks {len(due)} changes of this version, the first of them {due[0][0]}. "
            "Stop MAIA Web, then run: python manage.py migrate"
        )


@contextmanager
def explain_database() -> Iterator[None]:
    """Raise CommandError, with the remedy, for a database that cannot be used within the block."""
    try:
        yield
    except DatabaseError as error:
        raise CommandError(
            f"The database cannot be used: {str(error).strip()}. See MAIA_DATABASE_URL and MAIA_STATE; if it is "
            "damaged, name an empty place there and bring a backup back: manage.py restore FILE"
        ) from error


class ProgressLine:
    """A `Progress` for a terminal: what is done, how much of it, and the time left. A pipe gets a line every `piped`
    seconds, or nothing."""

    def __init__(self, piped: float = 0.0) -> None:
        self.stop = threading.Event()
        self.piped = piped
        self.shown = 0.0
        self.open = False
        """True if the cursor is behind our text."""
        self.pace = _Pace()

    def __call__(self, what: str, done: int, total: int) -> None:
        # Progress is reported between steps, which makes it the safe place to stop.
        if self.stop.is_set():
            raise Cancelled("Stopped by Ctrl+C.")
        what, now = escape_controls(what), time.monotonic()
        is_terminal = sys.stderr.isatty()
        left = self.pace.describe_remaining(done, total, now)
        # The last report is always shown, others at most ten times a second.
        if is_terminal and (done == total or now - self.shown > EVERY):
            self.shown, self.open = now, done != total
            # Return to the start of the line, and erase it.
            words = f"\r\033[K{what[:WIDEST]}: {done:,} of {total:,}{left}"
            print(words, end="" if self.open else "\n", file=sys.stderr, flush=True)
        elif not is_terminal and self.piped and now - self.shown > self.piped:
            self.shown = now
            print(f"{what}: {done:,} of {total:,}{left}", file=sys.stderr, flush=True)

    @contextmanager
    def until_ctrl_c(self, kept: str) -> Iterator[None]:
        """Let the work in the block finish its step at Ctrl+C, then raise CommandError with what is `kept` of it.

        Text printed afterwards begins on its own line.
        """
        # Only a flag: the work raises Cancelled at its next report.
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


class _Pace:
    """Estimate the remaining time from the pace since this total was first reported."""

    def __init__(self) -> None:
        self._total, self._first, self._begun = -1, 0, 0.0

    def describe_remaining(self, done: int, total: int, now: float) -> str:
        """Return the time left, as ", about 6 min left"; "" if it is unknown or short."""
        # With another total, or less done than before, another piece of work has begun.
        if total != self._total or done < self._first:
            self._total, self._first, self._begun = total, done, now
        # Work that was done before the first report tells nothing of the pace.
        passed, went = now - self._begun, done - self._first
        if not went or passed < SOON:
            return ""
        rest = passed / went * (total - done)
        return f", about {rest / 60:.0f} min left" if rest > SOON else ""
