"""Actions on exports and imports: create, delete, start. A worker reads and writes the files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from experiments.core import audit, transfers
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import InvalidInput
from experiments.core.params import clean_text
from experiments.exchange import export_query, form
from experiments.exchange.formats import selection
from experiments.exchange.safe_zip import ExchangeError
from experiments.installation.actions import start_job
from experiments.models import Export, ExportSubject, Format, Import, Job
from experiments.models.exchange import list_formats
from experiments.models.job import MOVING, JobKind, JobStatus

MAX_EXPORTS = 5
"""Maximum number of queued and running exports per person."""
QUERY_CHARS = 20_000
"""Maximum length of a filter; a thousand selected runs fit."""


@transaction.atomic
def make_export(actor: Actor, what: str, format: str, query: str) -> Export:  # noqa: A002 - the API's word
    """Queue an export and return its row. An unknown format becomes a zip where the subject's first format is zip
    (bundles and studies). Raises InvalidInput, also if no row matches."""
    if what not in ExportSubject.values:
        raise InvalidInput("Choose what to export.", "what")
    subject = ExportSubject(what)
    possible = list_formats(subject)
    if format not in possible:
        if possible[0] != Format.ZIP:
            listed = ", ".join(each.label for each in possible)
            raise InvalidInput(f"Choose a format. {subject.label} can be: {listed}.", "format")
        format = Format.ZIP  # noqa: A001
    if len(query) > QUERY_CHARS:
        raise InvalidInput(f"The filter has {len(query):,} characters, at most {QUERY_CHARS:,} are possible.", "query")
    # Exports take the disk space and threads of workers, which the whole team shares
    if Export.objects.filter(job__asked_by=actor.person, job__status__in=MOVING).count() >= MAX_EXPORTS:
        raise InvalidInput(f"You already have {MAX_EXPORTS} exports in progress. Wait for one, or stop it.")
    try:
        rows = export_query.select_rows(subject, query, actor.person)
        # Bad filters are refused here, on the form, and not later by a worker
        found = rows.exists()
        if format == Format.EVAL:
            export_query.check_log(subject, rows)
        elif format == Format.DATASET_RUNS:
            selection.list_whole_runs(rows, actor.person)
    except ExchangeError as error:
        raise InvalidInput(str(error), "query") from None
    if not found:
        raise InvalidInput("Nothing matches: the file would be empty.")
    job = start_job(actor, Job(kind=JobKind.EXPORT, subject=f"{subject.label} as {format}"))
    return Export.objects.create(job=job, what=what, format=format, query=query)


@transaction.atomic
def discard_export(actor: Actor, export: Export) -> None:
    """Stop a running export; delete any other, with its file after the commit."""
    audit.record(actor, Verb.EXPORT_DELETED, export)
    # A running worker deletes its own unfinished file, so it is only asked to stop
    moving = Job.objects.filter(pk=export.job_id, status=JobStatus.RUNNING)
    if not moving.update(stop_requested=True):
        export.job.delete()
        transaction.on_commit(partial(transfers.remove, export.place))


def bring_files(
    actor: Actor, kind: str, typed: Mapping[str, str], files: Sequence[UploadedFile[Any]]
) -> tuple[list[Import], list[tuple[str, str]]]:
    """Queue one import per file and return (imports, refused files as (name, reason)). `typed` applies to all files; a
    refused file does not block the others. Raises InvalidInput if every file is refused."""
    typed = form.fill_form(kind, actor.person, typed).check()
    if not files:
        raise InvalidInput("Choose a file that is not empty.", "file")
    if len(files) > form.AT_ONCE:
        raise InvalidInput(f"{len(files)} files at once are too many: choose at most {form.AT_ONCE}.", "file")
    # Check all files before the first one is stored
    looked = [(each, form.problem_of(kind, each.name or "file", each.size or 0, typed)) for each in files]
    left = [(each.name or "file", refused) for each, refused in looked if refused]
    if len(left) == len(files):
        # With a single file the reason needs no name
        why = left[0][1] if len(left) == 1 else " ".join(f"{name}: {why}" for name, why in left[:5])
        raise InvalidInput(why, "file")
    return [_keep_file(actor, each, kind, typed) for each, refused in looked if not refused], left


def _keep_file(actor: Actor, given: UploadedFile[Any], kind: str, typed: Mapping[str, str]) -> Import:
    """Store an uploaded file where workers find it, and queue its import."""
    options = form.complete_fields(kind, given.name or "", typed)
    name = clean_text(Path(given.name or "file").name, 200)
    # On the same disk, so that `put` can move the file instead of copying it
    handle, waiting = tempfile.mkstemp(dir=transfers.waiting_folder())
    try:
        with os.fdopen(handle, "wb") as target:
            for chunk in given.chunks():
                target.write(chunk)
        with transaction.atomic():
            named = {"owner": options["owner"]} if options.get("owner") else {}
            job = start_job(actor, Job(kind=JobKind.IMPORT, subject=name, options=options), **named)
            row = Import.objects.create(job=job, kind=kind, name=name, size=given.size or 0)
            # Inside the transaction: a worker sees the import only once its file is there.
            transfers.move_file(Path(waiting), row.place)
        return row
    finally:
        Path(waiting).unlink(missing_ok=True)
