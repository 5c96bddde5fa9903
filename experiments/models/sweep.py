"""Sweeps: one question asked of many units."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from experiments.models import stored


class SweepStatus(models.TextChoices):
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"
    OUT_OF_BUDGET = "out_of_budget", "Out of budget"
    STOPPED = "stopped", "Stopped"
    DONE = "done", "Done"


class SweepPriority(models.IntegerChoices):
    """A sweep's share of the work compared with other sweeps."""

    LOW = 1, "Low"
    NORMAL = 2, "Normal"
    HIGH = 4, "High"


class Sweep(models.Model):
    """One question about many units, for one or several agents: its runs, its budget, and what it used.

    A job creates the runs, some at a time. `core.sweep_totals` updates what they used.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="sweeps")
    created = models.DateTimeField(default=timezone.now, db_index=True)
    name = models.CharField(max_length=120)

    # The question, its units and its agents
    question = models.TextField(blank=True, help_text="with {unit}, {name}, {layer}, {model}; empty for the task's own")
    task = models.CharField(max_length=20)
    selection = stored.ShapedJSONField(shape=stored.Selection, help_text="which units, as they were chosen")
    variants = stored.ShapedJSONField(shape=list[stored.Variant], default=list, help_text="backbones and toolsets")
    options = stored.ShapedJSONField(shape=stored.Options, default=dict, blank=True)
    limits = stored.ShapedJSONField(shape=stored.StoredLimits, default=dict, help_text="of each run")
    seed = models.BigIntegerField(default=0)
    evaluation = models.ForeignKey(
        "experiments.Evaluation",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="sweeps",
        help_text="whose items its runs label; it steers the sweep",
    )

    # Its status
    status = models.CharField(max_length=14, choices=SweepStatus.choices, default=SweepStatus.RUNNING, db_index=True)
    reason = models.TextField(blank=True, help_text="why it stands still")
    priority = models.PositiveSmallIntegerField(choices=SweepPriority.choices, default=SweepPriority.NORMAL)
    job = models.OneToOneField("experiments.Job", models.SET_NULL, null=True, related_name="sweep")
    planned = models.PositiveIntegerField(default=0, help_text="runs it is to have")
    created_runs = models.PositiveIntegerField(default=0, help_text="runs of these that are there")
    retrying = models.CharField(max_length=20, blank=True, help_text="status of runs that are to go on")
    retry_asked = models.DateTimeField(null=True, blank=True, help_text="of these, those that ended before")
    ended = models.DateTimeField(null=True, blank=True)

    # The budget of the whole; empty is no limit
    cost_limit = models.FloatField(null=True, blank=True, help_text="US dollars")
    token_limit = models.PositiveBigIntegerField(null=True, blank=True)
    seconds_limit = models.FloatField(null=True, blank=True, help_text="seconds of work, all runs together")
    unpriced = models.BooleanField(default=False, help_text="whether a backbone without a known price may be asked")

    # What it used so far
    cost = models.FloatField(default=0.0, help_text="US dollars, as far as prices are known")
    tokens = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0.0, help_text="seconds of work, waits left out")

    class Meta:
        ordering = ["-created", "-pk"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("sweep", args=[self.pk])
