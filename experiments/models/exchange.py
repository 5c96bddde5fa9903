"""Exports, imports, and the origin of imported runs. A `Job` does the work."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import models
from django.utils import timezone

from experiments.models import stored

KEPT = timedelta(days=7)
"""How long an export's file can be downloaded."""


class ExportSubject(models.TextChoices):
    BUNDLE = "bundle", "Full runs"
    RUNS = "runs", "Runs"
    EXPERIMENTS = "experiments", "Experiments"
    OBSERVATIONS = "observations", "Observations"
    LABELS = "labels", "Labels"
    CHECKS = "checks", "Label checks"
    EVALUATIONS = "evaluations", "Items of evaluations"
    REVIEWS = "reviews", "Reviews"
    VERDICTS = "verdicts", "Final verdicts"
    AGREEMENT = "agreement", "Agreement of reviewers"
    QUEUES = "queues", "Review queues"
    TRIALS = "trials", "Pairwise trials"
    SWEEPS = "sweeps", "Sweeps"
    STUDY = "study", "Study (.zip)"


NOUNS = {
    ExportSubject.BUNDLE: "run",
    ExportSubject.RUNS: "run",
    ExportSubject.EXPERIMENTS: "experiment",
    ExportSubject.OBSERVATIONS: "observation",
    ExportSubject.LABELS: "label",
    ExportSubject.CHECKS: "check",
    ExportSubject.EVALUATIONS: "item",
    ExportSubject.REVIEWS: "review",
    ExportSubject.VERDICTS: "final verdict",
    ExportSubject.AGREEMENT: "measure",
    ExportSubject.QUEUES: "queue",
    ExportSubject.TRIALS: "trial",
    ExportSubject.SWEEPS: "sweep",
    ExportSubject.STUDY: "study",
}


class Format(models.TextChoices):
    ZIP = "zip", "ZIP"
    JSONL = "jsonl", "JSON Lines"
    CSV = "csv", "CSV"
    PARQUET = "parquet", "Parquet"
    EVAL = "eval", "Inspect log (.eval)"
    DATASET = "dataset", "Dataset (Hugging Face)"
    DATASET_RUNS = "dataset-runs", "Dataset with full runs (Hugging Face)"
    COSY = "cosy", "CSV for CoSy"
    DELPHI = "delphi", "Text files for delphi"
    NEURONPEDIA = "neuronpedia", "JSON Lines for Neuronpedia"


DATASETS = frozenset({Format.DATASET, Format.DATASET_RUNS})
LABEL_FILES = frozenset({Format.COSY, Format.DELPHI, Format.NEURONPEDIA})
_ENDINGS: dict[str, str] = {**dict.fromkeys(DATASETS, "zip"), "cosy": "csv", "delphi": "zip", "neuronpedia": "jsonl"}
"""How the file of a format ends, where that is not its name."""
_TABLE = (Format.CSV, Format.JSONL, Format.PARQUET)
FORMATS: Mapping[str, tuple[Format, ...]] = {
    ExportSubject.BUNDLE: (Format.ZIP, Format.EVAL),
    ExportSubject.STUDY: (Format.ZIP,),
    ExportSubject.RUNS: (*_TABLE, Format.DATASET, Format.DATASET_RUNS),
    ExportSubject.OBSERVATIONS: (*_TABLE, Format.DATASET, Format.DATASET_RUNS),
    ExportSubject.LABELS: (*_TABLE, Format.DATASET, Format.COSY, Format.DELPHI, Format.NEURONPEDIA),
    ExportSubject.EVALUATIONS: (*_TABLE, Format.EVAL),
}


def list_formats(what: str) -> tuple[Format, ...]:
    """Return the formats of an export, the default first."""
    return FORMATS.get(what, _TABLE)


class ImportKind(models.TextChoices):
    BUNDLE = "bundle", "Bundle"
    HISTORY = "history", "MAIA transcript (history.json)"
    LABELS = "labels", "Labels"


def expiry() -> datetime:
    return timezone.now() + KEPT


class Export(models.Model):
    """A file that a person asked for; it is kept until it expires."""

    job = models.OneToOneField("experiments.Job", models.CASCADE, related_name="export")
    what = models.CharField(max_length=12, choices=ExportSubject.choices)
    format = models.CharField(max_length=12, choices=Format.choices)
    query = models.TextField(blank=True, help_text="which of them, as in the address of the page")
    count = models.PositiveBigIntegerField(null=True, help_text="what the file holds, in rows or runs")
    size = models.PositiveBigIntegerField(null=True, help_text="bytes; empty until the file is whole")
    expires = models.DateTimeField(default=expiry, db_index=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"export {self.pk}: {self.what} as {self.format}"

    @property
    def place(self) -> str:
        """Return the name of the file in `core.transfers`."""
        return f"exports/{self.pk}.{self._ending}"

    @property
    def file_name(self) -> str:
        """Return the name under which a browser saves it."""
        name = "runs" if self.what == ExportSubject.BUNDLE else self.what
        of = f"-{self.format}" if self.format in _ENDINGS else ""
        return f"maia-{name}{of}-{self.pk}.{self._ending}"

    @property
    def _ending(self) -> str:
        return _ENDINGS.get(self.format, self.format)


class Import(models.Model):
    """A file that a person uploaded; it is removed once it has been read."""

    job = models.OneToOneField("experiments.Job", models.CASCADE, related_name="import_of")
    kind = models.CharField(max_length=8, choices=ImportKind.choices)
    name = models.CharField(max_length=200, help_text="what its owner calls the file")
    size = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"import {self.pk}: {self.name}"

    @property
    def place(self) -> str:
        """Return the name of the file in `core.transfers`, until it is removed."""
        return f"imports/{self.pk}"


class ImportedOpinions(models.Model):
    """What people said of an imported run at its origin, where they had their accounts: here their names are text."""

    run = models.OneToOneField("experiments.Run", models.CASCADE, related_name="opinions")
    threads = models.JSONField(default=list, blank=True)
    reviews = models.JSONField(default=list, blank=True)
    finals = models.JSONField(default=list, blank=True, help_text="final verdicts, the newest last")

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "opinions"

    def __str__(self) -> str:
        return f"what came with run {self.run_id}"


class ImportedRun(models.Model):
    """The origin of an imported run. Its identity is the same on every installation."""

    run = models.OneToOneField("experiments.Run", models.CASCADE, related_name="imported_run")
    upload = models.ForeignKey(Import, models.SET_NULL, null=True, related_name="imported_runs")
    kind = models.CharField(max_length=8, choices=ImportKind.choices)
    name = models.CharField(max_length=200, help_text="of the file")
    # Computed from the run itself, so that the same run has it on every installation.
    identity = models.CharField(max_length=64, unique=True)
    owner = models.CharField(max_length=150, blank=True, help_text="who asked, where the run took place")
    number = models.PositiveBigIntegerField(null=True, help_text="of the run there")
    parent = stored.ShapedJSONField(
        shape=stored.Origin, default=dict, blank=True, help_text="identity and number of the run it was forked from"
    )
    time = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"run {self.run_id} from {self.name}"
