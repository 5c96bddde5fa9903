"""Write a study as a folder of pages and images that any web server serves."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.management.prepared import PreparedCommand, ProgressLine
from experiments.models import Study
from experiments.studies.folder import FolderSink, write_study


class Command(PreparedCommand):
    help = "Write a study as a folder that any web server serves and that opens from a disk, without scripts."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", type=int, metavar="NUMBER", help="of the study, as its address says")
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="a new one, or an empty one")
        parser.add_argument("--names", action="store_true", help="with names of people")

    def handle(self, **options: Any) -> None:
        study = Study.objects.select_related("owner").filter(pk=options["study"]).first()
        if study is None:
            raise CommandError(f"There is no study {options['study']}.")
        target: Path = options["folder"]
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise CommandError(f"{target} is there already and not empty: name another folder.")
        try:
            write(study, target, show_names=options["names"])
        except OSError as error:
            raise CommandError(f"{target} cannot be written: {error.strerror}.") from error
        files = sum(1 for each in target.rglob("*") if each.is_file())
        self.stdout.write(f"{target}: open index.html in it; {files:,} files")


def write(study: Study, target: Path, *, show_names: bool) -> None:
    """Write the folder, whole or not at all. Raises CommandError at Ctrl+C."""
    line = ProgressLine()
    target.parent.mkdir(parents=True, exist_ok=True)
    # In the same file system: only there is a rename atomic.
    part = Path(tempfile.mkdtemp(dir=target.parent, prefix="."))
    try:
        with line.until_ctrl_c("No folder was written."):
            write_study(study, FolderSink(part), line, show_names=show_names)
        # `mkdtemp` gives the folder to its owner alone, and a web server must read it.
        part.chmod(0o755)
        # An empty target is replaced; one with files was refused above.
        part.replace(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
