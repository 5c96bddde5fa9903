"""Functions with known code (FIND): show what the scripted baselines find out by calling them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.core.compatibility import FUNCTIONS
from experiments.management import options as choices
from experiments.management.prepared import PreparedCommand, ProgressLine

FAMILIES = ("numeric", "strings", "concepts", "relations")
MAX_SEEDS = 100
DEFAULT_FUNCTIONS = 100
MAX_TROUBLES = 5
"""Maximum number of invalid entries and folders that are named."""


class Command(PreparedCommand):
    help = (
        "Measure the scripted baselines on fresh functions of ours, made after FIND: which share they find out by "
        "calling them. Numeric answers succeed with an NMSE below 0.1, those about texts with 10 exact matches of 10, "
        "those about words if 7 of 10 choices among three, made by the description alone, are right. With --published "
        "it says what a folder holds of FIND's published benchmark; with --family and --functions too, it measures the "
        "baseline on the first of these that can be run."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        count = partial(choices.positive, int)
        parser.add_argument("--family", choices=FAMILIES, help="default: numeric")
        parser.add_argument("--functions", type=count, metavar="N", help="of each seed; default: 100")
        parser.add_argument("--seeds", default="0", metavar="S,S,…", help="default: 0; others draw other functions")
        parser.add_argument(
            "--judge",
            default="",
            metavar="BACKBONE[:MODEL]",
            help="who chooses by descriptions of words, such as openai:gpt-4o; default: nearness in meaning",
        )
        parser.add_argument("--published", metavar="DIR", help="the folder find-dataset, or one that holds it")
        parser.add_argument("--write", metavar="DIR", help="write the published folder again, into an empty one")
        parser.add_argument("--json", action="store_true", help="print JSON instead, with a line for each failure")

    def handle(self, **options: Any) -> None:
        if options["write"] and not options["published"]:
            raise CommandError("--write copies a published folder: name that one with --published DIR.")
        line = ProgressLine()
        with line.until_ctrl_c("Nothing is kept; the same command begins again."):
            # A folder alone is described; with a family or a number, its functions are measured.
            if options["published"] and not (options["family"] or options["functions"]):
                found, text = _look_at_folder(options["published"], options["write"], line)
            else:
                found = _measure(options, line)
                text = _format(found)
        self.stdout.write(json.dumps(found) if options["json"] else text)


def _measure(options: dict[str, Any], line: ProgressLine) -> dict[str, Any]:
    from workers.jobs.functions import find_judge, measure_baseline, measure_functions
    from workers.jobs.published_functions import list_runnable

    judge = find_judge(options["judge"]) if options["judge"] else None
    family, count = options["family"] or "numeric", options["functions"] or DEFAULT_FUNCTIONS
    if folder := options["published"]:
        model, numbers = list_runnable(folder, family, count)
        return measure_functions(model, family, numbers, line, judge)
    return measure_baseline(family, _read_seeds(options["seeds"]), count, line, judge)


def _look_at_folder(folder: str, target: str | None, line: ProgressLine) -> tuple[dict[str, Any], str]:
    """Describe a published folder, as data and in words; with `target`, write it there again instead."""
    from workers.jobs.published_functions import copy_folder, survey_folder

    if target:
        count = copy_folder(folder, target)
        return {"written": target, "functions": count}, f"{count:,} functions are written to {target}."
    found = survey_folder(folder, line)
    lines = [f"FIND's published benchmark in {found['folder']}, revision {found['revision']}"]
    for row in found["families"]:
        lines += ["", *_format_family(row)]
    return found, "\n".join(lines)


def _format_family(row: dict[str, Any]) -> list[str]:
    if not row["is_here"]:
        return [f"{row['family']}: no folder {row['folder']} here"]
    lines = [f"{row['family']}: {row['listed']:,} listed, {row['here']:,} here, {row['runnable']:,} runnable"]
    lines += [f"  unreadable: {row['unreadable']}"] if row["unreadable"] else []
    for title, found in (("not runnable", row["reasons"]), ("known defect", row["defects"])):
        for each in found:
            more = ", …" if each["count"] > len(each["first"]) else ""
            lines.append(f"  {each['count']:,} {title}: {each['what']} ({', '.join(each['first'])}{more})")
    lines += [f"  of no function: {trouble}" for trouble in row["troubles"][:MAX_TROUBLES]]
    rest = len(row["troubles"]) - MAX_TROUBLES
    return [*lines, f"  and {rest:,} more of these"] if rest > 0 else lines


def _read_seeds(text: str) -> list[int]:
    """Parse `--seeds`. Raises CommandError."""
    parts = [part.strip() for part in text.split(",")]
    # `isascii`, because `isdigit` is also true of digits that `int` refuses, such as ².
    if len(parts) > MAX_SEEDS or not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts):
        wanted = f"1 to {MAX_SEEDS} whole numbers below 1,000,000, such as 0,1,2"
        raise CommandError(f"--seeds is {text[:80]!r}: give {wanted}.")
    return sorted({int(part) for part in parts})


def _format(found: dict[str, Any]) -> str:
    """Format shares with their intervals as a table, without atoms that were always found."""
    source = "of ours" if found["model"] == FUNCTIONS else f"of {found['model']}"
    lines = [f"{found['functions']:,} functions {source} ({found['family']}), scripted baseline", ""]
    for name, share in found["shares"].items():
        # Rows of atoms that were always found would fill the screen.
        if not name.startswith("atom: ") or share["value"] < 1:
            interval = f"[{share['low']:.2f}, {share['high']:.2f}]"
            lines.append(f"{name:24}{share['value']:6.2f} {interval:14}{share['n']:6,}")
    return "\n".join([*lines, *_format_choices(found["choices"], found["cost"])] if "choices" in found else lines)


def _format_choices(found: dict[str, Any], cost: float) -> list[str]:
    """Format the right choices by the baseline's description, by the true one and by none, beside chance."""
    head = f"{found['choices']:,} choices of one in three by a description, made by {found['judge']}"
    head += f", of which {found['unread']:,} could not be read" if found["unread"] else ""
    head += f" for ${cost:.2f}" if cost else ""
    lines = ["", f"{head}; chance {found['chance']:.2f}", ""]
    for name, share in found["right"].items():
        lines.append(f"{name:32}{share['value']:6.2f} {_write_interval(share)}")
    return lines


def _write_interval(share: dict[str, Any]) -> str:
    return f"[{share['low']:.2f}, {share['high']:.2f}]" if share["low"] is not None else "(too few for an interval)"
