"""Takes in the runs of a bundle, each whole or not at all: looked at first, then saved in one transaction.

Looking decodes every image and reads every event; what is found good waits in a folder that goes with the block. So
the transaction itself is short, and a worker that dies on the way leaves nothing that anybody sees.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import DatabaseError, transaction
from django.utils import timezone

from experiments import transcript
from experiments.models import Arrival, Image, Import, Label, Layer, Run, Tag, Unit
from experiments.models.tag import TAG_CHARS
from experiments.models.transfer import Brought
from experiments.transcript import Step, storable
from experiments.transfer import record
from experiments.transfer.laboratory import Laboratory, Progress, silent
from experiments.transfer.looking import KEY, TEXT, look_at_events, look_at_images, look_at_rest, steps
from experiments.transfer.reading import Archive, Refused, opened
from experiments.transfer.record import HIGHEST


@dataclass(frozen=True)
class Source:
    """Where files come from, and for whom they are taken in."""

    name: str
    by: User
    row: Import | None = None


@dataclass(frozen=True)
class Taken:
    """A run of a file: its row here, and whether it was here before."""

    run: Run
    known: bool


def bundle(path: Path, source: Source, laboratory: Laboratory, progress: Progress = silent) -> list[Taken]:
    """Take in all runs of a bundle; one that is here already stays as it is. Raises Refused."""
    with opened(path) as archive:
        folders = archive.folders()
        for name in set(archive.members) - {"manifest.json"}:
            if not any(name.startswith(folder) for folder in folders):
                raise Refused(f"{name!r} belongs to no run.")
        taken: list[Taken] = []
        for folder in folders:
            try:
                taken.append(run_in(archive, folder, source, laboratory, progress))
            except Refused as error:
                before = f" Of the {len(folders)} runs in it, those before {folder} were taken." if taken else ""
                raise Refused(f"{error}{before}") from None
        for each in taken:
            adopt(each.run)  # a fork may stand before its parent in the file
        return taken


def run_in(archive: Archive, folder: str, source: Source, laboratory: Laboratory, progress: Progress) -> Taken:
    """The run of one folder of the archive."""
    told = storable(archive.json(f"{folder}run.json"))
    if told.get("schema") != record.SCHEMA:
        words = f"run.json is of schema {record.shown(told.get('schema'))}; this version reads schema {record.SCHEMA}."
        raise Refused(f"{words} Update MAIA Web, or export the run again.")
    if there := known_run(told):
        return Taken(there, known=True)
    run = record.run_from(told, owner_of(told, source.by))
    with tempfile.TemporaryDirectory(prefix="maia-import-") as waiting:
        images = look_at_images(archive, folder, Path(waiting), laboratory, progress)
        keys = {row.key for row in images}
        look_at_events(archive, folder, keys, laboratory, progress)
        look_at_rest(archive, folder)
        progress("Saving", 1, 2)
        with transaction.atomic():
            save_images(images)
            save(run, steps(archive, folder, keys, laboratory))
            finish(run, told)
            arrive(run, told, source)
            store(images, Path(waiting))  # last: what went wrong before it leaves no file
    return Taken(run, known=False)


def known_run(told: Mapping[str, Any]) -> Run | None:
    """The run itself, if it took place here, or an earlier import of it."""
    identity = told.get("identity")
    if not isinstance(identity, str) or not KEY.fullmatch(identity):
        raise Refused("run.json has no identity, as runs of MAIA Web have.")
    if arrival := Arrival.objects.select_related("run").filter(identity=identity).first():
        return arrival.run
    return born_here(identity, record.moment(record.part(told, "run", dict), "created"))


def born_here(identity: str, created: datetime | None) -> Run | None:
    same = Run.objects.filter(created=created, arrival=None) if created else Run.objects.none()
    return next((run for run in same if record.identity(run) == identity), None)


def owner_of(told: Mapping[str, Any], importer: User) -> User:
    """The member of the team with the owner's name, else whoever imports it."""
    name = record.part(told, "owner", str)
    return User.objects.filter(username=name, member__isnull=False).first() or importer


# --- rows ---------------------------------------------------------------------------------------------


def save_images(rows: Sequence[Image]) -> None:
    """What is known here of the same pixels is kept, unless nothing is."""
    keys = [row.key for row in rows]
    vague = {key for start in range(0, len(keys), 500) for key in uploaded(keys[start : start + 500])}
    better = [row for row in rows if row.key in vague and row.origin != "uploaded"]
    Image.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
    Image.objects.bulk_update(better, ["origin", "prompt", "seed", "scene", "raw", "original"], batch_size=100)


def store(rows: Sequence[Image], waiting: Path) -> None:
    """The files of images that are not in the store."""
    for row in rows:
        if not default_storage.exists(Image.path_of(row.key)):
            default_storage.save(Image.path_of(row.key), ContentFile((waiting / row.key).read_bytes()))


def uploaded(keys: Sequence[str]) -> list[str]:
    return list(Image.objects.filter(key__in=keys, origin="uploaded").values_list("key", flat=True))


def save(run: Run, events: Iterator[Step]) -> None:
    """The run with all that follows from its events. Raises Refused naming the event that does not fit."""
    layer = Layer.objects.filter(model__name=run.model, name=run.layer, units__gt=run.unit).first()
    if layer:
        Unit.objects.get_or_create(layer=layer, number=run.unit)
    try:
        run.save()
        transcript.replay(run, closed(run, events))
    except (DatabaseError, ObjectDoesNotExist, ValidationError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"Event {run.last_seq} does not fit what stands before it: {error}") from None


def closed(run: Run, events: Iterator[Step]) -> Iterator[Step]:
    """The events, and an end where the run was still under way: it cannot go on here."""
    last = run.created
    for each in events:
        last = each.time
        yield each
    if not run.has_ended:
        yield Step("cancelled", transcript.end("It had not ended when it was exported, and cannot go on here."), last)


def finish(run: Run, told: Mapping[str, Any]) -> None:
    """What the events do not tell: exact times, seconds of work, scores of labels, labels of others."""
    row = told["run"]
    seconds = row.get("seconds")
    if isinstance(seconds, int | float) and 0 <= seconds < HIGHEST:
        run.seconds = seconds
    run.started = record.moment(row, "started") or run.started
    run.ended = record.moment(row, "ended") or run.ended
    run.save()
    for each in record.part(told, "labels", list):
        save_label(run, each)
    for name in record.part(told, "tags", list):
        if not isinstance(name, str) or not 0 < len(name) <= TAG_CHARS:
            raise Refused(f"run.json: {record.shown(name)} is no tag.")
        run.tags.add(Tag.objects.get_or_create(name=name)[0])


def save_label(run: Run, told: Any) -> None:
    """Raises Refused for what is no label."""
    if not isinstance(told, dict) or not isinstance(told.get("text"), str) or not isinstance(told.get("source"), str):
        raise Refused(f"run.json: {record.shown(told)} is no label.")
    scores, position = told.get("scores"), told.get("position")
    if not isinstance(scores, dict) or not isinstance(position, int) or not 0 <= position <= HIGHEST:
        raise Refused(f"run.json: the label {record.shown(told['text'])} has no position, or no scores.")
    if told["source"] == "run":
        run.label_set.filter(source="run", position=position, text=told["text"]).update(scores=scores)
        return
    label = Label.objects.create(
        run=run, text=told["text"][:TEXT], source=told["source"][:40], position=position, scores=scores
    )
    label.units.set(unit for each in told.get("units", []) if (unit := unit_of(each)))


def unit_of(told: Any) -> Unit | None:
    """The unit that [model, layer, number] names; None if its layer is not known here."""
    if not isinstance(told, list) or len(told) != 3 or not isinstance(told[2], int):
        raise Refused(f"run.json: {record.shown(told)} is no unit such as [model, layer, number].")
    layer = Layer.objects.filter(model__name=str(told[0]), name=str(told[1]), units__gt=told[2]).first()
    return Unit.objects.get_or_create(layer=layer, number=told[2])[0] if layer and told[2] >= 0 else None


def arrive(run: Run, told: Mapping[str, Any], source: Source) -> None:
    """Note where the run comes from; its parent is found again if it is here."""
    parent, number = told.get("parent") or {}, told.get("number")
    if not isinstance(parent, dict) or len(str(parent)) > 1000:
        raise Refused("run.json: parent is no run.")
    if not isinstance(number, int) or not 0 <= number < 2**63:
        raise Refused(f"run.json: number is {record.shown(number)}, and that is no number of a run.")
    Arrival.objects.create(
        run=run,
        brought=source.row,
        kind=Brought.BUNDLE,
        name=source.name[:200],
        identity=told["identity"],
        owner=told["owner"][:150],
        number=number,
        parent=parent,
        time=timezone.now(),
    )
    adopt(run)


def adopt(run: Run) -> None:
    """Lead an imported fork back to its parent, if that is here."""
    arrival = record.arrival_of(run)
    if arrival is None or run.parent_id is not None or not arrival.parent:
        return
    told = arrival.parent
    parent = known_run({"identity": told.get("identity"), "run": {"created": told.get("created")}})
    if parent is not None and parent.pk != run.pk:
        run.parent = parent
        run.save(update_fields=["parent"])
