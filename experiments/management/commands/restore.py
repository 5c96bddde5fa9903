"""Restore a backup into an empty installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.maintenance.restoring import restore_backup
from experiments.management.prepared import PreparedCommand, ProgressLine

LISTED = 20
"""Maximum number of skipped images that are named, one a line."""


class Command(PreparedCommand):
    help = "Bring a backup into an empty installation, on SQLite or PostgreSQL, in a folder or a bucket."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path, help="what manage.py backup wrote")

    def handle(self, **options: Any) -> None:
        # Each image is compared with its key, the hash of its pixels, before it is stored.
        from workers.jobs.images import key_of_file

        line, path = ProgressLine(piped=30), options["file"]
        try:
            with line.until_ctrl_c("No row was written."):
                restored = restore_backup(path, line, key_of_file)
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror or error}.") from error
        for each in restored.left_out[:LISTED]:
            self.stderr.write(each)
        if (more := len(restored.left_out) - LISTED) > 0:
            self.stderr.write(f"{more:,} further images are left out: manage.py verify names them.")
        made = restored.manifest
        images = "no images" if made.images is None else f"{made.images - len(restored.left_out):,} images"
        self.stdout.write(f"{sum(made.rows.values()):,} rows and {images} are back. Look: manage.py verify.")
