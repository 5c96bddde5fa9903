"""Long work that a person asked a worker to do: reading a model or a dataset, an index, an export, an import, a
training."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from experiments.models import stored


class JobKind(models.TextChoices):
    MODEL = "model", "Add a model"
    DATASET = "dataset", "Add a dataset"
    INDEX = "index", "Index"
    EXPORT = "export", "Export"
    IMPORT = "import", "Import"
    JUDGE = "judge", "Judge labels"
    EVALUATION = "evaluation", "Evaluate"
    SWEEP = "sweep", "Sweep"
    SPARSE = "sparse", "Train an auto-encoder"
    MEASURE = "measure", "Measure an auto-encoder"
    CAUSAL = "causal", "Causal check"
    GRAPH = "graph", "Graph of a circuit"
    CIRCUIT = "circuit", "Find a circuit"


class JobStatus(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    STOPPED = "stopped", "Stopped"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


MOVING = frozenset({JobStatus.QUEUED, JobStatus.RUNNING})


class Job(models.Model):
    """One piece of work. The worker that sets it from queued to running does it; `beat` shows that the worker is
    alive."""

    kind = models.CharField(max_length=10, choices=JobKind.choices)
    subject = models.CharField(max_length=500, help_text="key or path of the model or dataset")
    options = stored.ShapedJSONField(
        shape=stored.JobOptions,
        default=dict,
        blank=True,
        help_text="for an index: model and layers; for an auto-encoder: layer and recipe; else: label",
    )
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created = models.DateTimeField(default=timezone.now)
    status = models.CharField(max_length=10, choices=JobStatus.choices, default=JobStatus.QUEUED, db_index=True)
    result = models.TextField(blank=True, help_text="what came of it, or why it failed")
    stop_requested = models.BooleanField(default=False)
    beat = models.DateTimeField(default=timezone.now, help_text="when it was enqueued, or last known to be worked on")

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"job {self.pk}: {self.kind} {self.subject}"

    @property
    def is_moving(self) -> bool:
        return self.status in MOVING

    @property
    def is_stopping(self) -> bool:
        return self.stop_requested and self.is_moving

    @property
    def topic(self) -> str:
        """Return the topic under which `notify` keeps its progress."""
        return f"job:{self.pk}"
