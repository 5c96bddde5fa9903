"""Functions whose code is known (FIND): what the scripted baselines find out of them by calling them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.management import options as choices
from experiments.management.prepared import PreparedCommand, ProgressLine

FAMILIES = ("numeric", "strings", "concepts", "relations")
MOST_SEEDS = 100


class Command(PreparedCommand):
    help = (
        "Measure the scripted baselines on fresh functions of ours, made after FIND: which share they find out by "
        "calling them. Numeric answers succeed with an NMSE below 0.1, those about texts with 10 exact matches of 10, "
        "those about words if 7 of 10 choices among three, made by the description alone, are right."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        count = partial(choices.positive, int)
        parser.add_argument("--family", choices=FAMILIES, default="numeric", help="default: numeric")
        parser.add_argument("--functions", type=count, default=100, metavar="N", help="of each seed; default: 100")
        parser.add_argument("--seeds", default="0", metavar="S,S,…", help="default: 0; others draw other functions")
        parser.add_argument(
            "--judge",
            default="",
            metavar="BACKBONE[:MODEL]",
            help="who chooses by descriptions of words, such as openai:gpt-4o; default: nearness in meaning",
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead, with a line for each failure")

    def handle(self, **options: Any) -> None:
        from workers.jobs.functions import find_judge, measure_baseline

        judge = find_judge(options["judge"]) if options["judge"] else None
        line = ProgressLine()
        with line.until_ctrl_c("Nothing is kept; the same command begins again."):
            asked = (options["family"], _read_seeds(options["seeds"]), options["functions"])
            found = measure_baseline(*asked, line, judge)
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
    return "\n".join([*lines, *_format_choices(found["choices"], found["cost"])] if "choices" in found else lines)


def _format_choices(found: dict[str, Any], cost: float) -> list[str]:
    """Right choices by the baseline's description, by the true one and by none, beside chance."""
    head = f"{found['choices']:,} choices of one in three by a description, made by {found['judge']}"
    head += f", of which {found['unread']:,} could not be read" if found["unread"] else ""
    head += f" for ${cost:.2f}" if cost else ""
    lines = ["", f"{head}; chance {found['chance']:.2f}", ""]
    for name, share in found["right"].items():
        lines.append(f"{name:32}{share['value']:6.2f} {_write_interval(share)}")
    return lines


def _write_interval(share: dict[str, Any]) -> str:
    return f"[{share['low']:.2f}, {share['high']:.2f}]" if share["low"] is not None else "(too few for an interval)"
