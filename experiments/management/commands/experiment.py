"""Run one program from a file in the sandbox, on one unit, as the agent's programs are run. Saves nothing."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.core import compatibility
from experiments.management import options as choices
from experiments.management.prepared import FetchingCommand, ProgressLine
from workers.record.figures import figure

# Another status than 1, so that scripts can tell a failing program from a failing command.
FAILED = 3
"""Exit status if the program itself failed: its result is printed anyway."""


class Command(FetchingCommand):
    help = (
        "Run a program in the sandbox against one unit and print what came of it. "
        f"Exit status: 0 if it ran to its end, {FAILED} if it failed, 1 if it could not be run."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", metavar="FILE.py", help="the program, in any of the published dialects; - reads it")
        choices.add_system(parser)
        most = "of its own time at most (default: 60)"
        parser.add_argument("--seconds", type=partial(choices.positive, float), default=60.0, help=most)
        parser.add_argument("--json", action="store_true", help="print one JSON object instead")

    def handle(self, **options: Any) -> None:
        from workers.jobs.experiment import run_program

        program, line = text_of(options["file"]), ProgressLine()
        spec = choices.system_of(options)
        if advice := compatibility.advise(spec.model, options["toolset"]):
            self.stderr.write(advice)
        named = {name: options[name] for name in ("seed", "seconds", "toolset")}
        # Nothing is kept: the result of a program is printed, never stored.
        with line.until_ctrl_c(""):
            result = run_program(program, spec, **named, progress=line, stopped=line.stop.is_set)
        self.stdout.write(json.dumps(result, ensure_ascii=False) if options["json"] else _format_result(result))
        if result["status"] != "ok":
            raise CommandError(f"The program failed: {result['status'].replace('_', ' ')}.", returncode=FAILED)


def text_of(name: str) -> str:
    """Read the program from a file, or from standard input."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}") from error


def _format_result(result: dict[str, Any]) -> str:
    """Format the result for a person."""
    lines = [f"{result['status'].replace('_', ' ')}, {result['seconds']:.3f} s of its own time"]
    lines += [f"{call['seconds']:10.3f} s  {call['tool']}" for call in result["calls"]]
    lines += [f"{figure(each['activation']):>10}    {each['title']}" for each in result["observations"]]
    lines += result["texts"]
    cut = "[The output was cut here.]" if result["output_truncated"] else ""
    lines += filter(None, [result["output"].rstrip("\n"), cut, result["error"].rstrip("\n")])
    return "\n".join(lines)
