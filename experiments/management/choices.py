"""Options that several commands share: the system under study, and what it is studied with."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError, CommandParser

from workers import registry


def add_system(parser: CommandParser) -> None:
    parser.add_argument("--model", default="toybox", help="default: toybox; manage.py models lists what there is")
    parser.add_argument("--layer", help="for example layer4; manage.py models MODEL lists them")
    parser.add_argument("--unit", help="number of the unit, from 0; or its name, for a class or a concept")
    parser.add_argument("--data-set", default="", metavar="NAME", help="where exemplars come from: a key, name or path")
    parser.add_argument("--tool-set", choices=registry.TOOL_SETS, default="toybox", help="default: toybox")


def system_of(options: dict[str, Any]) -> Any:
    """The `SystemSpec` that the options name. Raises RequestError if there is none, CommandError."""
    from workers.jobs.systems import system_named

    if not options["layer"] or options["unit"] is None:
        raise CommandError("Say which unit: --layer layer4 --unit 7 (--help lists the rest).")
    return system_named(options["model"], options["layer"], options["unit"], options["data_set"])


def limit(kind: type[int] | type[float], text: str) -> int | float | None:
    """A limit as it is written: a number above 0, or "none"."""
    if text == "none":
        return None
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor none.") from None
