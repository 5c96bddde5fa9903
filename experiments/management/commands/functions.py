"""Functions whose code is known (FIND): what the scripted baselines find out of them by calling them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.management import options as choices
from experiments.management.prepared import PreparedCommand, ProgressLine

FAMILIES = ("numeric", "strings")
MOST_SEEDS = 100


class Command(PreparedCommand):
    help = (
        "Measure the scripted baselines on fresh functions of ours, made after FIND: which share they find out by "
        "calling them. Numeric answers succeed with an NMSE below 0.1, those about texts with 10 exact matches of 10."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        count = partial(choices.positive, int)
        parser.add_argument("--family", choices=FAMILIES, default="numeric", help="default: numeric")
        parser.add_argument("--functions", type=count, default=100, metavar="N", help="of each seed; default: 100")
        parser.add_argument("--seeds", default="0", metavar="S,S,…", help="default: 0; others draw other functions")
        parser.add_argument("--json", action="store_true", help="print JSON instead, with a line for each failure")

    def handle(self, **options: Any) -> None:
        from workers.jobs.functions import measure_baseline

        line = ProgressLine()
        with line.until_ctrl_c("Nothing is kept; the same command begins again."):
            found = measure_baseline(options["family"], _read_seeds(options["seeds"]), options["functions"], line)
        self.stdout.write(json.dumps(found) if options["json"] else _format(found))


def _read_seeds(text: str) -> list[int]:
    """Raises CommandError."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MOST_SEEDS or not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts):
        wanted = f"1 to {MOST_SEEDS} whole numbers below 1,000,000, such as 0,1,2"
        raise CommandError(f"--seeds is {text[:80]!r}: give {wanted}.")
    return sorted({int(part) for part in parts})


def _format(found: dict[str, Any]) -> str:
    """A table of shares with their intervals, atoms left out that were always found."""
    lines = [f"{found['functions']:,} functions of ours ({found['family']}), scripted baseline", ""]
    for name, share in found["shares"].items():
        if not name.startswith("atom: ") or share["value"] < 1:
            interval = f"[{share['low']:.2f}, {share['high']:.2f}]"
            lines.append(f"{name:24}{share['value']:6.2f} {interval:14}{share['n']:6,}")
    return "\n".join(lines)
