"""Fill a database with plausible rows, for measurements and demonstrations."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.core.params import parse_number
from experiments.management.prepared import PreparedCommand
from experiments.management.progress import ProgressLine
from workers.errors import Cancelled

PER_RUN = 100
"""Observations of a run, unless the number of runs is given."""


def count(text: str) -> int:
    """A whole number of 1 or more."""
    if not (number := parse_number(text)):
        raise ArgumentTypeError(f"{text!r} is not a whole number of 1 or more.")
    return number


class Command(PreparedCommand):
    help = "Add made-up runs, experiments, images and observations to an empty database, for measurements."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("observations", type=count, help="how many, as 10000")
        parser.add_argument("--runs", type=count, metavar="N", help=f"default: one for every {PER_RUN} observations")
        parser.add_argument("--force", action="store_true", help="even beside real runs")

    def handle(self, **options: Any) -> None:
        from workers.jobs import seeding

        if seeding.is_real() and not options["force"]:
            raise CommandError(
                "This database holds real runs, and made-up ones could not be told from them on the pages. "
                "Name an empty one with MAIA_DATABASE_URL and MAIA_STATE, or add --force."
            )
        observations: int = options["observations"]
        line = ProgressLine()
        try:
            with line.until_ctrl_c():
                made = seeding.seed(observations, options["runs"] or -(-observations // PER_RUN), line)
        except Cancelled as error:
            raise CommandError(f"{error} What was written stays; a fresh database is best.", returncode=130) from error
        self.stdout.write(f"Added {made.observations:,} observations in {made.runs:,} runs.")
