"""Check that everything is present and consistent: transcripts, the rows derived from them, images."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.maintenance import image_files, verification
from experiments.maintenance.findings import Finding
from experiments.management.options import positive
from experiments.management.prepared import PreparedCommand, ProgressLine
from experiments.models import Event, Image, Run

WRONG = 1
"""Exit status if something is wrong."""


class Command(PreparedCommand):
    help = "Look whether transcripts have no gaps, rows follow from them, and every image is what its key says."

    def add_arguments(self, parser: CommandParser) -> None:
        images = "whether the file of each image is read (default: yes)"
        parser.add_argument("--images", action=argparse.BooleanOptionalAction, default=True, help=images)
        parser.add_argument("--sample", type=_count, metavar="N", help="look at N random images instead of all")
        parser.add_argument("--redraw", action="store_true", help="have workers make missing thumbnails anew")
        parser.add_argument("--json", action="store_true", help="print what was found as JSON")

    def handle(self, **options: Any) -> None:
        from workers.jobs.images import key_of_file

        line = ProgressLine(piped=30)
        with line.until_ctrl_c("Nothing was changed."):
            # Reading every image may take hours, so it can be left out.
            key_of = key_of_file if options["images"] else None
            found = verification.find_problems(key_of, sample=options["sample"], progress=line)
            orphans = image_files.count_orphans(line) if options["images"] else None
        if options["json"]:
            self.stdout.write(json.dumps({"findings": [asdict(each) for each in found]}))
        else:
            self._describe(found)
            if orphans and orphans.files:
                self.stdout.write(f"{orphans.files:,} files belong to no image that is known; they do no harm.")
        if options["redraw"]:
            redrawn = verification.request_thumbnails(found)
            self.stderr.write(f"Workers make the thumbnails of {redrawn:,} images anew.")
        if found:
            raise CommandError(f"{len(found):,} things are wrong.", returncode=WRONG)

    def _describe(self, found: list[Finding]) -> None:
        for each in found:
            self.stdout.write(str(each))
        if not found:
            counts = [f"{each.objects.count():,} {each._meta.verbose_name_plural}" for each in (Run, Event, Image)]
            self.stdout.write(f"All is well: {', '.join(counts)}.")


def _count(text: str) -> int:
    return int(positive(int, text))
