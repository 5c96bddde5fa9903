"""Runs with everything in them, their bundles, and what comes of an export."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from PIL import Image as Pillow

from experiments.core import transcript, transfers
from experiments.exchange import import_bundle
from experiments.exchange.import_bundle import ImportSource
from experiments.models import Export, Image, Job, Label, Layer, Run, Unit, VisionModelRow
from tests.support.builders import experiment, make_run, replied, result, started
from workers.jobs import exchange, long
from workers.jobs.images import ImagesInDatabase
from workers.protocols import Provenance
from workers.record.events import Ended, ExperimentEnded
from workers.record.experiments import ActivationMap, LogEntry
from workers.record.experiments import Observation as Logged
from workers.record.replies import Conclusion
from workers.record.replies import Hypothesis as Claim

HOSTILE = "</title></style></pre><script>document.title='owned'</script><img src=http://127.0.0.1:1/x onerror=alert(1)>"
Files = dict[str, bytes]
GOOD: Files = {}


def picture(shade: int, **known: Any) -> str:
    """The key of a stored image."""
    images = ImagesInDatabase()
    key = images.remember(
        Pillow.new("RGB", (40, 30), (shade, 80, 120)), Provenance(**({"origin": "generated"} | known))
    )
    images.flush()
    return key


def full_run(owner: User, words: str = "a red ball", **fields: Any) -> Run:
    """A concluded run with images, masked and edited, that names a unit of the catalogue."""
    model, _ = VisionModelRow.objects.get_or_create(name="toybox")
    layer, _ = Layer.objects.get_or_create(
        model=model, name="layer4", defaults={"position": 4, "path": "layer4", "kind": "conv", "units": 64}
    )
    Unit.objects.get_or_create(layer=layer, number=7)
    run = make_run(owner, question=f"What? {words}", options={"dataset": "toybox"}, seed=5, **fields)
    scene = {"things": [], "ground": "grass", "light": "day", "backdrop": 1}
    raw = picture(10, prompt=words, seed=3, scene=scene)
    masked = picture(20, raw=raw)
    map_key = picture(25, origin="external")
    edit = picture(30, origin="edited", original=raw, prompt="make it blue")
    logged = (
        Logged(words, 3.25, raw, masked, "generated", words, 3, map=ActivationMap(map_key, 0.0, 3.25, 1.5)),
        Logged("edited", -1.5, edit, None, "edited", words, None, raw),
    )
    claim = Claim(1, words, "supported", "3.25")
    steps = [
        ("started", started()),
        ("reply", replied(1, text=words, prose=words, hypotheses=(claim,), code="print(1)")),
        ("experiment", experiment(1)),
        ("result", result(1, exemplar_mean=2.0, output=words, seconds=0.5)),
        ("reply", replied(2)),
        ("concluded", Ended("", Conclusion(words, (words, "second"), words))),
    ]
    for kind, payload in steps:
        if isinstance(payload, ExperimentEnded):
            payload = replace(payload, entries=(LogEntry(tuple(logged), words),))
        transcript.append(run.pk, kind, payload, seconds=1.25, state=b"\x81\xa1a\x01" if kind == "result" else b"")
    run.refresh_from_db()
    run.label_set.filter(position=1).update(scores={"auc": 0.9})
    run.tags.create(name=f"tag of {run.pk}")
    return run


def bundled(*runs: Run, path: Path) -> Path:
    with path.open("wb") as target:
        exchange.write_bundle([run.pk for run in runs], target, lambda *_: None)
    return path


def brought(path: Path, by: User) -> list[import_bundle.Taken]:
    return import_bundle.bundle(path, ImportSource(path.name, by), exchange.laboratory())


def forgotten(*runs: Run) -> None:
    """As on another installation: neither the runs nor their images are here."""
    for run in runs:
        run.delete()
    for image in Image.objects.all():
        default_storage.delete(Image.path_of(image.key))
    Image.objects.all().delete()
    Label.objects.all().delete()


def exported(owner: User, what: str, form: str, query: str = "") -> tuple[Job, bytes]:
    """What came of an export, and its file."""
    job = Job.objects.create(kind="export", subject=what, asked_by=owner)
    export = Export.objects.create(job=job, what=what, format=form, query=query)
    long.work(job.pk)
    job.refresh_from_db()
    if not transfers.file_exists(export.place):
        return job, b""
    with transfers.fetch(export.place) as path:
        return job, path.read_bytes()


def good_files(owner: User, folder: Path) -> Files:
    """The members of a good bundle of a run that is not here any more; written once."""
    if not GOOD:
        run = full_run(owner)
        with zipfile.ZipFile(bundled(run, path=folder / "good.zip")) as packed:
            GOOD.update({name: packed.read(name) for name in packed.namelist() if name != "manifest.json"})
        forgotten(run)
    return dict(GOOD)


def packed(files: Files, path: Path, more: Callable[[zipfile.ZipFile], None] = lambda _: None) -> Path:
    """A bundle of these members, with a manifest that fits them."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in files.items():
            target.writestr(name, data)
        target.writestr("manifest.json", json.dumps({"schema": 1, "files": hashes}))
        more(target)
    return path


def put(*place: Any, value: Any) -> Callable[[Any], Any]:
    """Sets one field, however deep."""

    def change(data: Any) -> Any:
        *way, last = place
        inner = data
        for step in way:
            inner = inner[step]
        inner[last] = value
        return data

    return change
