"""Import the runs of a bundle, each completely or not at all: check first, then save in one transaction.

Checking decodes every image and event. Checked images wait in a temporary folder, rows made from events in memory. The
transaction is therefore short and does not block other writers; a worker that dies halfway leaves no visible rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import DatabaseError, transaction
from django.utils import timezone

from experiments.core import transcript
from experiments.core.transcript import ImportedEvent, strip_unstorable
from experiments.core.units_of_runs import find_unit_of
from experiments.exchange import opinions, opinions_decoding, run_decoding, run_record
from experiments.exchange.decoding import shorten_value
from experiments.exchange.image_services import ImageServices, Progress, ignore_progress
from experiments.exchange.run_decoding import (
    CHECK_FIGURES,
    LabelTold,
    RunDetails,
    parse_time,
    require_field,
)
from experiments.exchange.safe_zip import Archive, ExchangeError, open_archive
from experiments.exchange.validate_bundle import KEY, check_page, look_at_images, steps
from experiments.models import (
    CheckStatus,
    Image,
    Import,
    ImportedRun,
    ImportKind,
    Label,
    LabelCheck,
    Layer,
    Run,
    Tag,
    Unit,
)
from workers.record.events import Ended
from workers.record.origins import Origin

AT_ONCE = 500


@dataclass(frozen=True)
class ImportSource:
    """The name of an imported file, the importing person, and the import's row."""

    name: str
    by: User
    row: Import | None = None


@dataclass(frozen=True)
class Taken:
    """A run of a file: its row here, and whether it already existed."""

    run: Run
    known: bool
    left: str = ""
    """What was left out of the run, as a sentence."""


def bundle(
    path: Path, source: ImportSource, laboratory: ImageServices, progress: Progress = ignore_progress
) -> list[Taken]:
    """Import all runs of a bundle. Runs that already exist stay as they are. Raises ExchangeError."""
    with open_archive(path) as archive:
        folders = archive.folders()
        # A member outside of all runs would be accepted unread
        for name in set(archive.members) - {"manifest.json"}:
            if not any(name.startswith(folder) for folder in folders):
                raise ExchangeError(f"{name!r} belongs to no run.")
        taken: list[Taken] = []
        for folder in folders:
            try:
                taken.append(_run_in(archive, folder, source, laboratory, progress))
            # Each run has its own transaction: those before a bad one stay
            except ExchangeError as error:
                before = f" Of the {len(folders)} runs in it, those before {folder} were taken." if taken else ""
                raise ExchangeError(f"{error}{before}") from None
        for each in taken:
            _link_parent(each.run)  # In the file, a fork may come before its parent
        return taken


def _run_in(
    archive: Archive, folder: str, source: ImportSource, laboratory: ImageServices, progress: Progress
) -> Taken:
    """Import the run of one folder of the archive."""
    data = strip_unstorable(archive.json(f"{folder}run.json"))
    if data.get("schema") != run_record.SCHEMA:
        raise ExchangeError(
            f"run.json is of schema {shorten_value(data.get('schema'))}; this version reads schema "
            f"{run_record.SCHEMA}. Update MAIA Web, or export the run again."
        )
    # Before the images are decoded, which is the expensive part
    if there := _known_run(data):
        return Taken(there, known=True)
    run, said = run_record.run_from(data, source.by), run_decoding.decode_details(data)
    name = f"{folder}people.json"  # Bundles of earlier versions have no people.json
    people = archive.json(name) if name in archive.members else {}
    opinions_told = opinions_decoding.decode_opinions(strip_unstorable(people))
    # 1. Check everything: images, events, people and page, without writing to the database
    with tempfile.TemporaryDirectory(prefix="maia-import-") as waiting:
        images = look_at_images(archive, folder, Path(waiting), laboratory, progress)
        keys = {row.key for row in images}
        for number, _ in enumerate(steps(archive, folder, keys), 1):
            progress("Looking at events", number, number + 1)
        check_page(archive, folder)
        save_events = replay_events(run, steps(archive, folder, keys))
        progress("Saving", 1, 2)
        # 2. Save, files before rows: a crash leaves unused files and no row without a file
        with store_images(images, Path(waiting)), transaction.atomic():
            save_images(images)
            save(run, save_events)
            finish(run, said, data["identity"], source)
            opinions.save(run, opinions_told)
    return Taken(run, known=False)


def _known_run(data: Mapping[str, Any]) -> Run | None:
    """Return the run itself if it was made here, or an earlier import of it. Raises ExchangeError if the data have no
    identity."""
    identity = data.get("identity")
    if not isinstance(identity, str) or not KEY.fullmatch(identity):
        raise ExchangeError("run.json has no identity, as runs of MAIA Web have.")
    if imported_run := ImportedRun.objects.select_related("run").filter(identity=identity).first():
        return imported_run.run
    # Hashes of local runs are not stored: look for runs created at the same moment and compare
    created = parse_time(require_field(data, "run", dict), "created")
    same = Run.objects.filter(created=created, imported_run=None) if created else Run.objects.none()
    return next((run for run in same if run_record.identity(run) == identity), None)


# --- rows ---------------------------------------------------------------------------------------------


def save_images(rows: Sequence[Image]) -> None:
    """Save images. An existing row is changed only if it knows nothing about its image's origin."""
    # "External" only says that the pixels came from a file
    vague = Image.objects.filter(origin=Origin.EXTERNAL).only("key").in_bulk([row.key for row in rows])
    better = [row for row in rows if row.key in vague and row.origin != Origin.EXTERNAL]
    Image.objects.bulk_create(rows, ignore_conflicts=True, batch_size=AT_ONCE)
    Image.objects.bulk_update(better, ["origin", "prompt", "seed", "scene", "raw", "original"], batch_size=100)


@contextmanager
def store_images(rows: Sequence[Image], waiting: Path) -> Iterator[None]:
    """Store the missing image files before the block locks rows; delete them if the block fails."""
    paths = {row.key: Image.path_of(row.key) for row in rows}
    # Keeps a simultaneous cleanup from deleting files that this import relies on
    Image.claim(paths)
    fresh = [key for key, path in paths.items() if not default_storage.exists(path)]
    try:
        for key in fresh:
            default_storage.save(paths[key], ContentFile((waiting / key).read_bytes()))
        yield
    except BaseException:
        # Another import may have saved the same image meanwhile: keep files that have a row
        for key in set(fresh) - set(Image.objects.filter(key__in=fresh).values_list("key", flat=True)):
            default_storage.delete(paths[key])
        raise


def replay_events(run: Run, events: Iterator[ImportedEvent]) -> Callable[[], None]:
    """Check that the events fit each other; return a function that saves the run with them. Raises ExchangeError naming
    the first bad event."""
    try:
        return transcript.replay(run, _close_run(run, events))
    except (ObjectDoesNotExist, ValueError, KeyError, TypeError) as error:
        raise ExchangeError(f"Event {run.last_seq} does not fit the events before it: {error}") from None


def save(run: Run, save_events: Callable[[], None]) -> None:
    """Save the run. Raises ExchangeError for what the database refuses."""
    find_unit_of(run)  # Labels need the row of the unit
    try:
        save_events()
    except (DatabaseError, ValidationError, ValueError, TypeError) as error:
        raise ExchangeError(f"What follows from its events does not fit the database: {error}") from None


def _close_run(run: Run, events: Iterator[ImportedEvent]) -> Iterator[ImportedEvent]:
    """Yield the events, plus a cancellation if the run had not ended: it cannot continue here."""
    last = run.created
    for each in events:
        last = each.time
        yield each
    if not run.has_ended:
        yield ImportedEvent(
            "cancelled", Ended("It had not ended when it was exported, and cannot continue here."), last
        )


def finish(run: Run, said: RunDetails, identity: str, source: ImportSource) -> None:
    """Save what the events do not contain: exact times, seconds, scores, other labels, tags, the origin. Link the
    parent if it is here."""
    run.seconds = said.seconds
    run.started, run.ended = said.started or run.started, said.ended or run.ended
    run.save()
    save_labels(run, said.labels)
    if said.check:
        _save_check(run, said.check, identity)
    # Three queries, whatever the number of tags
    Tag.objects.bulk_create([Tag(name=name) for name in said.tags], ignore_conflicts=True)
    run.tags.set(list(Tag.objects.filter(name__in=said.tags)))
    ImportedRun.objects.create(
        run=run,
        upload=source.row,
        kind=ImportKind.BUNDLE,
        name=source.name[:200],
        identity=identity,
        owner=said.owner,
        number=said.number,
        parent=said.parent,
        time=timezone.now(),
    )
    _link_parent(run)


def _link_parent(run: Run) -> None:
    """Link an imported fork to its parent, if that is here."""
    imported_run = run_record.arrival_of(run)
    if imported_run is None or run.parent_id is not None or not imported_run.parent:
        return
    data = imported_run.parent
    parent = _known_run({"identity": data.get("identity"), "run": {"created": data.get("created")}})
    if parent is not None and parent.pk != run.pk:
        run.parent = parent
        run.save(update_fields=["parent"])


def _save_check(run: Run, told: Mapping[str, Any], identity: str) -> None:
    """Save the label check of a run, if its unit is in the catalogue."""
    if (unit := find_unit_of(run)) is None:
        return
    status = CheckStatus.DONE if told["status"] == CheckStatus.DONE else CheckStatus.UNFINISHED
    figures = {name: told[name] for name in CHECK_FIGURES}
    known = {name: told[name] for name in ("text", "dataset", "split")}
    known |= {"seconds": told["seconds"] or 0.0, "status": status}
    found = strip_unstorable({"result": told["result"]})["result"]
    # With a different key, an imported result never passes for one that was measured here.
    run.label_check, _ = LabelCheck.objects.update_or_create(
        key=sha256(f"imported {identity}".encode()).hexdigest(),
        defaults={**known, **figures, "unit": unit, "result": found, "options": {"imported": True}},
    )
    run.save(update_fields=["label_check"])
    run.label_set.filter(source="run").update(label_check=run.label_check)


# --- labels: a fixed number of queries, because other writers wait meanwhile ---


def save_labels(run: Run, data: Sequence[LabelTold]) -> None:
    """Save the labels of a bundle, in the current transaction. The run's own labels already exist and get their scores;
    the others are added."""
    scores = {(each.position, each.text): each.scores for each in data if each.source == "run"}
    rows = [row for row in run.label_set.filter(source="run") if (row.position, row.text) in scores]
    for row in rows:
        row.scores = scores[row.position, row.text]
    Label.objects.bulk_update(rows, ["scores"], batch_size=AT_ONCE)
    others = [each for each in data if each.source != "run"]
    if others:
        _save_other_labels(run, others)


def _save_other_labels(run: Run, data: Sequence[LabelTold]) -> None:
    """Add labels of other sources. Units of layers that are unknown here are left out."""
    layers = {(layer.model.name, layer.name): layer for layer in Layer.objects.select_related("model")}
    names = ("text", "source", "position", "scores")
    made = [Label(run=run, **{name: getattr(each, name) for name in names}) for each in data]
    labels = Label.objects.bulk_create(made, batch_size=AT_ONCE)
    pairs: set[tuple[int, tuple[int, int]]] = set()
    for label, each in zip(labels, data, strict=True):
        for model, name, number in each.units:
            if (layer := layers.get((model, name))) and number < layer.units:
                pairs.add((label.pk, (layer.pk, number)))
    places = {place for _, place in pairs}
    # Another request may be creating the same unit; with `ignore_conflicts` Django sets no keys, so they are read.
    fresh = [Unit(layer_id=layer, number=number) for layer, number in sorted(places)]
    Unit.objects.bulk_create(fresh, ignore_conflicts=True, batch_size=AT_ONCE)
    known = Unit.objects.filter(layer__in={layer for layer, _ in places}, number__in={number for _, number in places})
    keys = {(layer, number): pk for layer, number, pk in known.values_list("layer_id", "number", "pk")}
    through = Label.units.through
    rows = [through(label_id=label, unit_id=keys[place]) for label, place in sorted(pairs)]
    through.objects.bulk_create(rows, ignore_conflicts=True, batch_size=AT_ONCE)
