"""Fills a database with plausible rows: `python -m tests.support.seeding observations 100000`, then `reviews 10000`,
`evaluations 12`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence

import django

REAL = (
    "This database holds real runs, and made-up rows could not be told from them on the pages. "
    "Name an empty one with MAIA_DATABASE_URL and MAIA_STATE, or add --force."
)


def main(arguments: Sequence[str]) -> str:
    """What was added, in words. Exits where that makes no sense, or real rows are there."""
    parser = ArgumentParser(prog="python -m tests.support.seeding")
    parser.add_argument("what", choices=["observations", "reviews", "evaluations"])
    parser.add_argument("count", type=_count, help="how many, as 10000")
    parser.add_argument("--runs", type=_count, metavar="N", help="of observations; default: one for every 100")
    parser.add_argument("--force", action="store_true", help="even beside real runs")
    asked = parser.parse_args(arguments)

    from experiments.management.prepared import ProgressLine
    from tests.support.seeding import bulk, evaluations, images, observations, reviews

    if observations.is_real() and not asked.force:
        sys.exit(REAL)
    line = ProgressLine()
    with line.until_ctrl_c("Rows that were made are kept."):
        if asked.what == "observations":
            runs = asked.runs or -(-asked.count // observations.PER_RUN)
            made = observations.seed(asked.count, runs, line)
            return f"Added {made.observations:,} observations in {made.runs:,} runs."
        if asked.what == "evaluations":
            measured = evaluations.seed(asked.count, line, images.draw_images())
            return f"Added {measured.evaluations:,} evaluations and {measured.checks:,} label checks."
        opinions = reviews.seed(asked.count, line)
        bulk.settle()
        return f"Added {opinions.reviews:,} reviews in {opinions.queues:,} queues."


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ArgumentTypeError(f"{text!r} is not a whole number of 1 or more.")
    return int(text)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "maia_web.settings")
    django.setup()
    print(main(sys.argv[1:]))
