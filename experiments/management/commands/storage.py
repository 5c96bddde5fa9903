"""Test the bucket of images, or fill it from the folder in which they were stored before."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.maintenance import copying, image_files
from experiments.management.prepared import PreparedCommand, ProgressLine


class Command(PreparedCommand):
    help = "Try the bucket of MAIA_STORAGE out, or carry images between the state folder and it."

    def add_arguments(self, parser: CommandParser) -> None:
        parts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        parts.add_parser("check", help="do once all that the installation does with its bucket")
        copy = parts.add_parser(
            "copy", help="carry images from the folder to the bucket, going on where it was stopped"
        )
        copy.add_argument("--back", action="store_true", help="from the bucket to the folder instead")
        copy.add_argument("--check", action="store_true", help="afterwards read each image and compare it with its key")

    def handle(self, **options: Any) -> None:
        if options["act"] == "check":
            self.stdout.write(f"The bucket {', '.join(copying.try_out())}.")
        else:
            self._copy(back=options["back"], check=options["check"])

    def _copy(self, *, back: bool, check: bool) -> None:
        # The check reads the configured store, which is the bucket, not the folder.
        if back and check:
            raise CommandError("Copy back first; then unset MAIA_STORAGE and let manage.py verify read the folder.")
        line = ProgressLine(piped=30)
        with line.until_ctrl_c("What was copied is kept; the same command continues."):
            copied = copying.copy(line, back=back)
        self.stdout.write(
            f"{copied.files:,} files copied, {copied.size / 2**20:,.1f} MiB; {copied.there:,} were there before."
        )
        if check:
            from workers.jobs.images import key_of_file

            with line.until_ctrl_c("Nothing was changed."):
                found = list(image_files.check_images(key_of_file, line))
            for each in found:
                self.stdout.write(str(each))
            if found:
                raise CommandError(f"{len(found):,} images are wrong.", returncode=1)
            self.stdout.write("Every image is what its key says.")
