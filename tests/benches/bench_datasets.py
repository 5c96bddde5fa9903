"""A hundred thousand observations as a dataset: seconds and memory of the export and of `load_dataset`, beside a CSV.

Also, how many bytes images take: once a row, as they are, or once each, in a table of their own.
"""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from PIL import Image as Pillow

from experiments.models import Experiment, Export, Format, Image, Job, Observation, Run
from tests.support.builders import make_run
from workers.jobs import exchange

pytestmark = [pytest.mark.bench, pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]

RUNS, IMAGES, EXEMPLARS, RUNS_OF_A_UNIT = 1_000, 100, 15, 10
"""A run looks at the exemplars of its unit, as the other runs of that unit do, and at images of its own."""
PEAK = """
def peak():
    return next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith("VmHWM"))
"""
OPEN = f"""{PEAK}
import os, sys, time
os.environ["HF_HUB_OFFLINE"] = "1"
import datasets
base, start = peak(), time.perf_counter()
table = datasets.load_dataset(sys.argv[1], split="train", cache_dir=sys.argv[2])
opened = time.perf_counter()
table[len(table) // 2]["image"].load()
print(f"{{len(table):,}} rows, {{table.num_columns}} columns: {{opened - start:.1f}} s to open,")
print(f"{{(time.perf_counter() - opened) * 1e3:.0f}} ms to an image, peak {{peak()}} MB ({{base}} MB once imported)")
"""
READ = f"""{PEAK}
import csv, sys, time
base, start = peak(), time.perf_counter()
rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8-sig", newline="")))
print(f"{{len(rows):,}} rows, {{len(rows[0])}} columns, no images: {{time.perf_counter() - start:.1f}} s,")
print(f"peak {{peak()}} MB ({{base}} MB before)")
"""


def test_a_hundred_thousand_observations(owner: User, tmp_path: Path) -> None:
    import datasets  # type: ignore[import-untyped]  # noqa: F401 - its own memory is not the export's
    import pyarrow.parquet  # noqa: F401

    sizes = fill(owner, random.Random(0))
    _export(owner, Format.DATASET, tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "x.zip") as packed:
        packed.extractall(tmp_path / "folder")
        files = sum(each.file_size for each in packed.infolist() if "observations" in each.filename)
    per_row, once = sum(sizes), sum(dict(zip(_keys(), sizes, strict=True)).values())
    print(f"images: {per_row >> 20} MB once a row, {once >> 20} MB once each; the Parquet files {files >> 20} MB")
    print("load_dataset:", _in_process(OPEN, tmp_path / "folder", tmp_path / "cache"))
    _export(owner, Format.CSV, tmp_path / "x.csv")
    print("csv.DictReader:", _in_process(READ, tmp_path / "x.csv"), f"(load {os.getloadavg()[0]:.1f})")
    assert Observation.objects.count() == RUNS * IMAGES


def _export(owner: User, form: Format, path: Path) -> None:
    job = Job.objects.create(kind="export", subject="observations", asked_by=owner)
    export = Export.objects.create(job=job, what="observations", format=form)
    before, start = _memory(), time.perf_counter()
    with path.open("wb") as target:
        exchange._write_contents(export, target, lambda *_: None)
    seconds, size = time.perf_counter() - start, path.stat().st_size >> 20
    print(f"\n{form.label}: {seconds:.1f} s, {size} MB; memory {before} MB, at most {_memory('VmHWM')} MB")


def _keys() -> list[str]:
    return list(Observation.objects.order_by("pk").values_list("image_id", flat=True))


def _memory(what: str = "VmRSS") -> int:
    """Of this process, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(what))


def _in_process(program: str, *given: Path) -> str:
    command = [sys.executable, "-c", program, *map(str, given)]
    return " ".join(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def fill(owner: User, chance: random.Random) -> list[int]:
    """Runs with observations. Returns the bytes of the image of each."""
    pixels = np.random.default_rng(0)
    size_of: dict[str, int] = {}
    rows: list[Observation] = []
    for number in range(RUNS):
        run = make_run(owner, unit=number // RUNS_OF_A_UNIT, status="concluded", observation_count=IMAGES)
        experiment = Experiment.objects.create(run=run, number=1, round=1, code="", observation_count=IMAGES)
        unit = number // RUNS_OF_A_UNIT
        keys = [f"{unit:032x}{each:032x}" for each in range(EXEMPLARS)]
        keys += [f"f{number:031x}{each:032x}" for each in range(IMAGES - EXEMPLARS)]
        for key in keys:
            if key not in size_of:
                size_of[key] = _store(key, pixels)
        rows += [_row(run, experiment, place, key, chance) for place, key in enumerate(keys, 1)]
    Image.objects.bulk_create((Image(key=key, width=24, height=24, origin="generated") for key in size_of), 1000)
    Observation.objects.bulk_create(rows, 1000)
    return [size_of[row.image_id] for row in rows]


def _row(run: Run, experiment: Experiment, place: int, key: str, chance: random.Random) -> Observation:
    known: dict[str, Any] = {"title": f"image {place}", "prompt": f"a red ball on grass, number {place}"}
    return Observation(
        run=run, experiment=experiment, position=place, image_id=key, origin="generated", measured=True,
        activation=chance.gauss(1, 1), **known,
    )  # fmt: skip


def _store(key: str, pixels: np.random.Generator) -> int:
    """Store the file of an image of noise. Returns its bytes."""
    buffer = io.BytesIO()
    Pillow.fromarray(pixels.integers(0, 256, (24, 24, 3), dtype=np.uint8)).save(buffer, "PNG", compress_level=0)
    path = Path(default_storage.path(Image.path_of(key)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())
    return buffer.tell()
