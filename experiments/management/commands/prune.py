"""Count data that are no longer needed, and remove them with `--yes`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from experiments.maintenance import pruning
from experiments.management.options import positive
from experiments.management.prepared import PreparedCommand, ProgressLine


class Command(PreparedCommand):
    help = "Count images that nothing refers to, files of no image, old drafts and deliveries; remove them with --yes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--older-than", type=_days, default=30.0, metavar="DAYS", help="default: 30")
        parser.add_argument("--yes", action="store_true", help="remove them; without it nothing is changed")

    def handle(self, **options: Any) -> None:
        line = ProgressLine(piped=30)
        with line.until_ctrl_c("What was removed until then is gone; the rest stays."):
            # Without --yes the same code counts, so that both agree.
            found = pruning.prune(options["older_than"], line, dry=not options["yes"])
        done = "Removed" if options["yes"] else "To be removed"
        self.stdout.write(
            f"{done}: {found.removed:,} images ({found.size / 2**20:,.1f} MiB), {found.files:,} files of no image, "
            f"{found.drafts:,} drafts, {found.deliveries:,} deliveries of webhooks."
        )
        if found.marked:
            mark = "are marked" if options["yes"] else "would be marked"
            self.stdout.write(
                f"{found.marked:,} images that nothing refers to {mark}: they go a day later, by another --yes."
            )
        if not options["yes"]:
            self.stdout.write("Nothing was changed. Say --yes to have it done.")


def _days(text: str) -> float:
    return float(positive(float, text))
