"""Fill queues with made-up reviews, for measurements and demonstrations."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.management.commands.seed_observations import count
from experiments.management.prepared import PreparedCommand
from experiments.management.progress import ProgressLine
from workers.errors import Cancelled


class Command(PreparedCommand):
    help = "Add made-up queues and submitted reviews to a database without real runs, for measurements."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("reviews", type=count, help="how many, as 100000")
        parser.add_argument("--force", action="store_true", help="even beside real runs")

    def handle(self, **options: Any) -> None:
        from experiments.reviews import seeding
        from workers.jobs import bulk
        from workers.jobs.seeding import is_real

        if is_real() and not options["force"]:
            raise CommandError(
                "This database holds real runs, and made-up reviews could not be told from real ones on the pages. "
                "Name an empty one with MAIA_DATABASE_URL and MAIA_STATE, or add --force."
            )
        line = ProgressLine()
        try:
            with line.until_ctrl_c():
                made = seeding.seed(options["reviews"], line)
                bulk.settle()
        except Cancelled as error:
            raise CommandError(f"{error} What was written stays; a fresh database is best.", returncode=130) from error
        self.stdout.write(f"Added {made.reviews:,} reviews in {made.queues:,} queues.")
