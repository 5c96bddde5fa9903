"""Write a copy of database and images to one file, consistent, while everything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.maintenance.backup import write_backup
from experiments.management.prepared import PreparedCommand, ProgressLine


class Command(PreparedCommand):
    help = "Write database and images into one file, as they are at this moment; MAIA Web keeps running."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path, help="it must not be there yet; for your eyes alone")
        without = "leave the images out, where they are copied otherwise, as a bucket is"
        parser.add_argument("--without-images", action="store_true", help=without)

    def handle(self, **options: Any) -> None:
        # Backups often run from a timer: their log gets a line every 30 seconds.
        line, path = ProgressLine(piped=30), options["file"]
        try:
            with line.until_ctrl_c("No file was written."):
                made = write_backup(path, line, images=not options["without_images"])
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror or error}.") from error
        images = "no images" if made.images is None else f"{made.images:,} images"
        size = path.stat().st_size / 1e6
        self.stdout.write(f"{path}: {sum(made.rows.values()):,} rows and {images}, {size:,.1f} MB.")
        if made.lost:
            self.stderr.write(f"{made.lost:,} images are not in it, for their files are gone: see manage.py verify.")
