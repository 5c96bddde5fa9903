"""Jobs of workers for exports and imports, and the removal of expired files.

`experiments.exchange` defines the files. This module adds what needs the laboratory: decode images, parse replies,
check events.
"""

from __future__ import annotations

import base64
import logging
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core import transfers
from experiments.core.actors import Actor
from experiments.core.outages import explain_outage
from experiments.exchange import (
    export_bundle,
    export_query,
    form,
    import_bundle,
    import_labels,
    label_tests,
    maia_history,
    opinions,
    tables,
)
from experiments.exchange.formats import label_files
from experiments.exchange.image_services import Decoded, ImageServices, Progress
from experiments.exchange.import_bundle import ImportSource, Taken
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Export, ExportSubject, Format, Import, ImportKind, Job, JobStatus, Run, Study
from experiments.models.exchange import DATASETS, LABEL_FILES, NOUNS
from experiments.models.job import MOVING
from experiments.studies import folder as study_folder
from workers import registry
from workers.errors import ToolMisuse
from workers.jobs.inspect_logs import evaluation as inspect_evaluation
from workers.jobs.inspect_logs import log as inspect_log

log = logging.getLogger(__name__)

FORGOTTEN_SECONDS = 3600.0
"""Age after which a file without a row is deleted, in seconds."""
FINE, MIN_SIDE = 224, 64
"""Longest sides in pixels of pictures in run.html: of the answer, and of runs with very many images."""
SIDES = ((60, FINE), (150, 128), (1_000, 80))
"""(number of images, longest side of their pictures): keeps the file at about a megabyte."""
QUALITY = 60
"""WebP quality of these pictures, a third of the size of an equally good JPEG."""


def write_export(job: Job, progress: Progress) -> str:
    """Run a job of kind "export": write the file completely or not at all. Return its contents in words."""
    export = Export.objects.get(job=job)
    # Into a temporary file first: a reader must never get half a file.
    with tempfile.NamedTemporaryFile(dir=transfers.waiting_folder(), delete=False) as part:
        try:
            count = _write_contents(export, part, progress)
            # Flushed, or the size would lack what is still in memory.
            part.flush()
            size = Path(part.name).stat().st_size
            transfers.move_file(Path(part.name), export.place)
        finally:
            Path(part.name).unlink(missing_ok=True)
    Export.objects.filter(pk=export.pk).update(count=count, size=size)
    if not Export.objects.filter(pk=export.pk).exists():  # Deleted in the meantime
        transfers.remove(export.place)
    return f"{count:,} {NOUNS[ExportSubject(export.what)]}{'' if count == 1 else 's'}"


def _write_contents(export: Export, target: IO[bytes], progress: Progress) -> int:
    """Write the requested data. Return the number of runs or rows."""
    viewer = export.job.asked_by
    chosen = export_query.select_rows(ExportSubject(export.what), export.query, viewer)
    if export.what == ExportSubject.BUNDLE:
        write = inspect_log.write_runs if export.format == Format.EVAL else write_bundle
        return write(list(chosen.values_list("pk", flat=True)), target, progress, viewer)
    if export.what == ExportSubject.STUDY:
        return write_study(chosen.first(), target, progress, show_names=export_query.shows_names(export.query))
    if export.format == Format.EVAL:
        return inspect_evaluation.write_evaluation(chosen, target, progress, viewer)
    if export.format in DATASETS:
        from workers.jobs import dataset_folder

        return dataset_folder.write(export, chosen, target, progress)
    if export.format in LABEL_FILES:
        return label_files.write(Format(export.format), chosen, target, progress, viewer)
    # Before the first row is read, so that no row is seen without a record
    export_query.record_disclosure(chosen, viewer)
    table = tables.TABLES[ExportSubject(export.what)]
    if export.format == Format.PARQUET:
        from workers.jobs import parquet

        return parquet.write(table, chosen, target, progress, viewer)
    return tables.write(table, Format(export.format), chosen, target, progress, viewer)


def write_bundle(keys: Sequence[int], target: IO[bytes], progress: Progress, viewer: User | None = None) -> int:
    """Write the bundle of these runs, as this person may see them. Several runs have one folder each."""
    with export_bundle.packing(target) as pack:
        add_runs(pack, keys, progress, viewer)
    return len(keys)


def add_runs(pack: export_bundle.Pack, keys: Sequence[int], progress: Progress, viewer: User | None = None) -> None:
    """Write these runs into an archive. Several runs have one folder each."""
    for done, key in enumerate(keys):
        progress(f"Run {key}", done, len(keys))
        run = Run.objects.select_related("owner", "parent").get(pk=key)
        if viewer is not None:
            export_query.record_disclosure(opinions.reviews_of(run, viewer), viewer)
        side = next((side for count, side in SIDES if run.observation_count <= count), MIN_SIDE)
        tell = partial(progress, "Drawing the page", done, len(keys))
        small = lru_cache(maxsize=500)(partial(_encode_picture, side, tell))  # Runs repeat some images
        folder = f"run-{key}/" if len(keys) > 1 else ""
        export_bundle.write(pack, run, small, folder, viewer, fine=partial(_encode_picture, FINE, tell))


def write_study(study: Study | None, target: IO[bytes], progress: Progress, *, show_names: bool) -> int:
    """Write the folder of a study as a zip, with images from the store. Raises ExchangeError if the study was
    deleted."""
    if study is None:
        raise ExchangeError("The study was deleted.")
    with zipfile.ZipFile(target, "w") as packed:
        top = f"study-{study.pk}/"
        study_folder.write_study(study, export_bundle.Pack(packed), progress, show_names=show_names, folder=top)
    return 1


def _encode_picture(side: int, tell: Callable[[], None], key: str) -> str:
    """Return a small WebP of an image as a data URL; "" if its file is missing."""
    from workers.jobs.images import read_image
    from workers.lab.imaging import thumbnail

    # The progress raises if the job was stopped, so it can end between two pictures.
    tell()
    try:
        picture = thumbnail(read_image(key).convert("RGB"), side)
    except KeyError:
        return ""
    buffer = BytesIO()
    picture.save(buffer, "WEBP", quality=QUALITY, method=6)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def take_import(job: Job, progress: Progress) -> str:
    """Run a job of kind "import". Return what was imported."""
    row = Import.objects.get(job=job)
    # Imported runs need an owner
    if job.asked_by is None:
        raise ExchangeError("The account of the person who uploaded this file was deleted.")
    if not transfers.file_exists(row.place):
        raise ExchangeError("The file was removed after an earlier attempt. Upload it again.")
    try:
        owner = form.owner_of(job.asked_by, str(job.options.get("owner") or ""))
        source = ImportSource(row.name, owner, row)
        with transfers.fetch(row.place) as path:
            if row.kind == ImportKind.LABELS:
                taken = _take_and_test(path, source, job, Actor(job.asked_by), progress)
            else:
                taken = import_file(path, ImportKind(row.kind), source, job.options, progress)
    except Exception as error:
        # A later attempt needs the file.
        if not _will_resume(job, error):
            transfers.remove(row.place)
        raise
    transfers.remove(row.place)
    return taken


def _will_resume(job: Job, error: Exception) -> bool:
    """True if the import will be resumed: by another worker if this one shuts down, or by any worker after an
    outage."""
    from workers.jobs import lease

    # A user's stop is final; a worker that shuts down also stops its jobs, and those are resumed
    stops = lease.stopping.is_set() and not Job.objects.filter(pk=job.pk, stop_requested=True).exists()
    return stops or bool(explain_outage(error))


def _take_and_test(path: Path, source: ImportSource, job: Job, actor: Actor, progress: Progress) -> str:
    """Import labels, and start their test if there are new ones and the installation tests automatically."""
    named = str(job.options.get("model") or ""), " ".join(str(job.options.get("source") or "").split())
    before = label_tests.count_labels(*named)
    taken = import_file(path, ImportKind.LABELS, source, job.options, progress)
    told = label_tests.begin(actor, *named) if label_tests.count_labels(*named) > before else ""
    return f"{taken} {told}".strip()


def import_file(path: Path, kind: ImportKind, source: ImportSource, options: dict[str, Any], progress: Progress) -> str:
    """Import a file. Raises RequestError, after which only complete runs before the bad one are kept."""
    if kind == ImportKind.LABELS:
        # Files number units from 0 or from 1.
        layer, first = str(options.get("layer") or ""), int(str(options.get("units_from") or 0) == "1")
        model, origin = str(options["model"]), str(options["source"])
        return import_labels.import_label_file(path, model, origin, progress, layer=layer, first=first)
    if kind == ImportKind.HISTORY:
        taken = describe_result([maia_history.import_history(path, source, options, laboratory(), progress)])
        return f"{taken} {registry.weights_warning(str(options.get('model') or ''))}".strip()
    return describe_result(import_bundle.bundle(path, source, laboratory(), progress))


def describe_result(taken: Sequence[Taken]) -> str:
    """Describe the imported runs of a file in words."""
    fresh = [f"run {each.run.pk}" for each in taken if not each.known]
    known = [f"run {each.run.pk}" for each in taken if each.known]
    parts = [f"Imported as {join_names(fresh)}."] if fresh else []
    parts += [f"Here already, and left as it is: {join_names(known)}."] if known else []
    return " ".join([*parts, *(each.left for each in taken if each.left)])


def join_names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 12 else f"{', '.join(names[:10])} and {len(names) - 10} more"


def laboratory() -> ImageServices:
    """Return the functions that imports need."""
    return ImageServices(decode, parse)


def decode(data: bytes) -> Decoded:
    """Decode an image and encode it again. Raises ValueError."""
    from workers.lab.imaging import decode_image, encode_png, image_key

    try:
        image = decode_image(data)
    except ToolMisuse as error:
        raise ValueError(str(error)) from None
    return Decoded(image_key(image), image.width, image.height, encode_png(image))


def parse(text: str) -> dict[str, Any]:
    """Parse a reply by the agent's grammar."""
    import msgspec

    from workers.record.grammar.reply import parse as parse_reply

    return msgspec.to_builtins(parse_reply(text))


def remove_expired() -> None:
    """Delete expired exports, and files without a row."""
    # Those of running jobs stay: their file is not written yet.
    expired = Export.objects.filter(expires__lt=timezone.now()).exclude(job__status__in=MOVING)
    Job.objects.filter(export__in=list(expired)).delete()
    # By file name: `place` begins with the folder.
    wanted = {each.place.rpartition("/")[2] for each in Export.objects.all()}
    waiting = Job.objects.filter(import_of__isnull=False, status__in=[*MOVING, JobStatus.STOPPED])
    brought = {str(pk) for pk in waiting.values_list("import_of", flat=True)}
    # Files of deleted rows, and of workers that died while writing
    for folder, names in (("exports", wanted), ("imports", brought)):
        transfers.remove_others(folder, names, FORGOTTEN_SECONDS)
    transfers.remove_broken(FORGOTTEN_SECONDS)
