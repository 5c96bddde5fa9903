"""Write runs as a bundle with all their data and a page that opens without a network, or as a log of Inspect."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.management.prepared import PreparedCommand, ProgressLine
from experiments.models import Run


class Command(PreparedCommand):
    help = "Write runs as a bundle (.zip), which any MAIA Web can import; run.html in it opens without a network."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("runs", nargs="+", type=int, metavar="RUN", help="numbers of the runs")
        parser.add_argument("--to", type=Path, metavar="FILE", help="default: run-N.zip, or runs.zip for several")
        parser.add_argument(
            "--format", choices=("zip", "eval"), default="zip", help="eval: a log that `inspect view` opens"
        )

    def handle(self, **options: Any) -> None:
        # Each run once, in the order of the command.
        keys = list(dict.fromkeys(options["runs"]))
        if unknown := sorted(set(keys) - set(Run.objects.filter(pk__in=keys).values_list("pk", flat=True))):
            raise CommandError(f"There is no run {unknown[0]}.")
        ending = options["format"]
        target = options["to"] or Path(f"run-{keys[0]}.{ending}" if len(keys) == 1 else f"runs.{ending}")
        try:
            write(keys, target, ending)
        except OSError as error:
            raise CommandError(f"{target} cannot be written: {error.strerror}.") from error
        self.stdout.write(f"{target}: {len(keys)} run{'' if len(keys) == 1 else 's'}, {target.stat().st_size:,} bytes")


def write(keys: list[int], target: Path, ending: str) -> None:
    """Write the file, whole or not at all. Raises CommandError at Ctrl+C."""
    from workers.jobs import exchange
    from workers.jobs.inspect_logs import log

    write_file = log.write_runs if ending == "eval" else exchange.write_bundle
    line = ProgressLine()
    # In the same folder: only within one file system is a rename atomic.
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as part:
        try:
            with line.until_ctrl_c("No file was written."):
                write_file(keys, part, line)
            # Before the rename: the file must be whole under its final name.
            part.flush()
            Path(part.name).replace(target)
        finally:
            Path(part.name).unlink(missing_ok=True)
