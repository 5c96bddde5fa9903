"""Experiments (programs that ran) and observations (images they logged). Kept in step with events."""

from __future__ import annotations

from django.db import models


class Experiment(models.Model):
    """One program, and what came of it."""

    run = models.ForeignKey("experiments.Run", models.CASCADE, related_name="experiments")
    number = models.PositiveIntegerField(help_text="counts the run's experiments from 1")
    round = models.PositiveIntegerField()
    code = models.TextField()
    status = models.CharField(max_length=20, default="running")
    output = models.TextField(blank=True)
    error = models.TextField(blank=True)
    seconds = models.FloatField(default=0.0)
    tool_seconds = models.FloatField(default=0.0)
    calls = models.JSONField(default=list, blank=True)
    state = models.BinaryField(default=b"", blank=True)

    class Meta:
        ordering = ["run", "number"]
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="one_experiment_per_number")]

    def __str__(self) -> str:
        return f"run {self.run_id} experiment {self.number}"


class Observation(models.Model):
    """One image an experiment logged."""

    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="observations")
    position = models.PositiveIntegerField()
    title = models.CharField(max_length=300, blank=True)
    activation = models.FloatField(db_index=True)
    image = models.ForeignKey("experiments.Image", models.PROTECT, related_name="observations")
    masked = models.ForeignKey("experiments.Image", models.PROTECT, null=True, related_name="masked_observations")
    origin = models.CharField(max_length=10)
    prompt = models.TextField(blank=True)
    seed = models.BigIntegerField(null=True)
    original = models.CharField(max_length=64, blank=True, help_text="key of the image this one was edited from")

    class Meta:
        ordering = ["experiment", "position"]
        constraints = [models.UniqueConstraint(fields=["experiment", "position"], name="one_observation_per_position")]

    def __str__(self) -> str:
        return f"{self.title or 'untitled'}: {self.activation:.2f}"
