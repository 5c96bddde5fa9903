"""Import data from elsewhere: bundles of MAIA Web, MAIA transcripts, labels of other methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from experiments.core import notify
from experiments.exchange import form
from experiments.management.prepared import STOPPED, PreparedCommand, ProgressLine
from experiments.models import ImportKind
from workers.errors import MaiaError

KINDS = {".zip": ImportKind.BUNDLE, ".json": ImportKind.HISTORY} | dict.fromkeys(
    (".csv", ".tsv", ".jsonl"), ImportKind.LABELS
)
NEEDED: dict[ImportKind, tuple[str, ...]] = {
    ImportKind.BUNDLE: (),
    ImportKind.HISTORY: ("model", "layer", "unit"),
    ImportKind.LABELS: ("model", "source"),
}
NAMES = ("model", "layer", "unit", "question", "backbone_model", "source", "units_from")


class Command(PreparedCommand):
    help = "Import bundles (.zip), MAIA transcripts (history.json) or labels of another method (.csv, .json, .jsonl)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
        parser.add_argument("--owner", metavar="NAME", help="who imports it (default: the first user)")
        parser.add_argument("--model", default="", help="of a transcript or of labels; manage.py models lists them")
        parser.add_argument("--layer", default="", help="of a transcript; of labels whose file names none")
        parser.add_argument("--unit", default="", help="of a transcript (else from its name: layer4_122.json)")
        parser.add_argument("--question", default="", help="of a transcript")
        parser.add_argument("--backbone-model", default="", help="of a transcript: the model that wrote its replies")
        parser.add_argument("--source", default="", help="of labels: the method that wrote them, as milan")
        first = "of labels: the number of a layer's first unit in the file, 0 or 1 (default: 0)"
        parser.add_argument("--units-from", choices=("0", "1"), default="0", help=first)

    def handle(self, **options: Any) -> None:
        notify.muted.set()  # works without Redis
        line, owner, failed = ProgressLine(), _importer(options["owner"]), 0
        typed = {name: options[name] for name in NAMES}
        many = len(options["files"]) > 1
        for path in options["files"]:
            try:
                taken = _import_file(path, owner, typed, line)
            except CommandError as error:
                # Of many files, one that is refused does not hold up the others; Ctrl+C does.
                if not many or error.returncode == STOPPED:
                    raise
                failed += 1
                self.stderr.write(f"{path}: {error}")
            else:
                self.stdout.write(f"{path}: {taken}" if many else taken)
        if failed:
            raise CommandError(f"{failed} of {len(options['files'])} files were not taken; the others were.")


def _import_file(path: Path, owner: User, typed: dict[str, str], line: ProgressLine) -> str:
    """Import one file; return the outcome in words. Raises CommandError."""
    from experiments.exchange.import_bundle import ImportSource
    from workers.jobs import exchange

    try:
        kind, said = _describe_file(path, typed)
        with line.until_ctrl_c("Runs that were whole by then are kept."):
            return exchange.import_file(path, kind, ImportSource(path.name, owner), said, line)
    except MaiaError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error


def _importer(name: str | None) -> User:
    """Return the user of this name. Raises CommandError if there is none."""
    users = User.objects.filter(username=name) if name else User.objects.order_by("pk")
    if (user := users.first()) is None:
        raise CommandError(f"There is no user {name!r}." if name else "There is no user yet: start MAIA Web once.")
    return user


def _describe_file(path: Path, typed: dict[str, str]) -> tuple[ImportKind, dict[str, str]]:
    """Return the kind of a file, and its description. Raises CommandError for other files, or if data are missing."""
    if path.is_dir():
        # MAIA itself writes a folder for each run: name the transcripts in it.
        inside = ", ".join(sorted(each.name for each in path.glob("*.json"))[:5])
        raise CommandError(f"{path.name} is a folder. Bring the files in it{': ' if inside else ''}{inside}.")
    kind = KINDS.get(path.suffix.lower())
    # Labels may come as .json too: a source is what only labels have.
    if kind == ImportKind.HISTORY and typed["source"]:
        kind = ImportKind.LABELS
    if kind is None:
        raise CommandError(f"{path.name} ends in none of {', '.join(KINDS)}.")
    said = form.complete_fields(kind, path.name, typed)
    if missing := [name for name in NEEDED[kind] if not said[name]]:
        raise CommandError(f"Say which {missing[0]} it is about: --{missing[0]} …")
    return kind, said
