"""What commands that work in the foreground share: a database that is there, and leave to fetch what is not."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from experiments.core.schema_version import refuse_older_schema
from workers.errors import MaiaError


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
