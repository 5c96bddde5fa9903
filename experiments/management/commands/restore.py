"""What a backup holds, brought into an empty installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.keeping.restoring import restore_backup
from experiments.management.prepared import PreparedCommand, ProgressLine


class Command(PreparedCommand):
    help = "Bring a backup into an empty installation, on SQLite or PostgreSQL, in a folder or a bucket."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path, help="what manage.py backup wrote")

    def handle(self, **options: Any) -> None:
        line, path = ProgressLine(piped=30), options["file"]
        try:
            with line.until_ctrl_c("No row was written."):
                made = restore_backup(path, line)
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror or error}.") from error
        images = "no images" if made.images is None else f"{made.images:,} images"
        self.stdout.write(f"{sum(made.rows.values()):,} rows and {images} are back. Look: manage.py verify.")
