"""Experiments (programs that ran), observations (images they logged) and hypotheses. Updated with events."""

from __future__ import annotations

from django.db import models

from experiments.models import stored
from experiments.models.mapped import MappedImage
from workers.record.figures import figure


class Experiment(models.Model):
    """One program and its outcome."""

    run = models.ForeignKey("experiments.Run", models.CASCADE, related_name="experiments")
    number = models.PositiveIntegerField(help_text="counts the run's experiments from 1")
    round = models.PositiveIntegerField()
    code = models.TextField()
    status = models.CharField(max_length=20, default="running")
    output = models.TextField(blank=True)
    error = models.TextField(blank=True)
    seconds = models.FloatField(default=0.0)
    tool_seconds = models.FloatField(default=0.0)
    calls = stored.ShapedJSONField(shape=list[stored.Call], default=list, blank=True)
    state = models.BinaryField(default=b"", blank=True)

    # Updated with events, so that lists neither join nor count.
    seq = models.PositiveIntegerField(default=0, help_text="the event that holds its result, or its start until then")
    observation_count = models.PositiveIntegerField(default=0)
    best_activation = models.FloatField(null=True)

    class Meta:
        ordering = ["run", "number"]
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="one_experiment_per_number")]
        indexes = [models.Index(fields=["best_activation", "id", "run"], name="experiments_by_activation")]

    def __str__(self) -> str:
        return f"run {self.run_id} experiment {self.number}"


class Observation(MappedImage):
    """One image that an experiment logged."""

    run = models.ForeignKey("experiments.Run", models.CASCADE, related_name="observations", db_index=False)
    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="observations", db_index=False)
    position = models.PositiveIntegerField()
    title = models.CharField(max_length=300, blank=True)
    activation = models.FloatField(
        help_text="what the system returned; the value claimed by the program if it was not measured"
    )
    claimed = models.FloatField(null=True, help_text="what the program logged; empty if it named no number")
    measured = models.BooleanField(
        default=False, db_default=False, help_text="whether the system returned `activation`"
    )
    differs = models.BooleanField(default=False, db_default=False, help_text="whether the claim is another number")
    image = models.ForeignKey("experiments.Image", models.PROTECT, related_name="observations", db_index=False)
    masked = models.ForeignKey("experiments.Image", models.PROTECT, null=True, related_name="masked_observations")
    origin = models.CharField(max_length=10)
    prompt = models.TextField(blank=True)
    seed = models.BigIntegerField(null=True)
    parameters = stored.ShapedJSONField(
        shape=dict[str, float], null=True, help_text="what the game engine drew it with; empty for other images"
    )
    original = models.CharField(max_length=64, blank=True, help_text="key of the image this one was edited from")
    is_original = models.BooleanField(default=False, db_default=False, help_text="whether the run made an edit from it")
    change = models.FloatField(null=True, help_text="what the edit did to the activation; empty for all but edits")

    class Meta:
        ordering = ["experiment", "position"]
        constraints = [models.UniqueConstraint(fields=["experiment", "position"], name="one_observation_per_position")]
        # One index for each order of the gallery, with all columns that its filters compare: a page is found without
        # the rows.
        indexes = [
            models.Index(fields=["image", "run"], name="observations_of_an_image"),
            models.Index(fields=["run", "activation", "id", "origin"], name="observations_of_a_run"),
            models.Index(fields=["activation", "id", "origin", "run"], name="observations_by_activation"),
            models.Index(fields=["origin", "activation", "id", "run"], name="origin_by_activation"),
            models.Index(
                fields=["experiment", "position", "origin", "run", "activation", "id"], name="observations_by_time"
            ),
            models.Index(fields=["origin", "experiment", "position", "run", "activation", "id"], name="origin_by_time"),
            models.Index(
                fields=["change", "id", "origin", "run", "activation"],
                condition=models.Q(change__isnull=False),
                name="edits_by_change",
            ),
            models.Index(
                fields=["activation", "id", "run"],
                condition=models.Q(is_original=True),
                name="originals_by_activation",
            ),
            models.Index(
                fields=["experiment", "position", "run"],
                condition=models.Q(differs=True),
                name="observations_that_differ",
            ),
            models.Index(
                fields=["experiment", "position", "run"],
                condition=models.Q(parameters__isnull=False),
                name="engine_observations",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.title or 'untitled'}: {figure(self.activation)}"


class Hypothesis(models.Model):
    """One line of the agent's list in one round, with the agent's comment on it."""

    run = models.ForeignKey("experiments.Run", models.CASCADE, related_name="hypotheses")
    round = models.PositiveIntegerField()
    number = models.PositiveIntegerField()
    text = models.TextField()
    status = models.CharField(max_length=10, default="open")
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["run", "round", "number"]
        verbose_name_plural = "hypotheses"
        constraints = [models.UniqueConstraint(fields=["run", "round", "number"], name="one_hypothesis_per_number")]

    def __str__(self) -> str:
        return f"run {self.run_id} round {self.round} H{self.number}: {self.text[:60]}"
