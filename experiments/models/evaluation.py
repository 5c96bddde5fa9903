"""Label checks on images that the label's authors never saw, and evaluations with their items."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from experiments.models import stored
from workers.record.evaluation_kinds import KindRow, find_kind


class CheckStatus(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    DONE = "done", "Measured"
    UNFINISHED = "unfinished", "Unfinished"
    UNTESTABLE = "untestable", "Cannot be tested"
    FAILED = "failed", "Failed"


PROBE, DEVELOPMENT = "probe", "development"
"""Splits of a dataset (`workers.lab.splits`): labels are checked on the first, and tried on the second during a run."""
OPEN_CHECKS = frozenset({CheckStatus.QUEUED, CheckStatus.RUNNING, CheckStatus.UNFINISHED})


class LabelCheck(models.Model):
    """The check of one label of one unit. The same label, unit and methods are checked only once."""

    # One key for each question: the same label, unit and methods are checked only once.
    key = models.CharField(max_length=64, unique=True, help_text="SHA-256 of all that decides what is measured")
    unit = models.ForeignKey("experiments.Unit", models.CASCADE, related_name="checks")
    text = models.TextField(help_text="the label; alternatives joined by OR")
    dataset = models.CharField(max_length=500, help_text="key of the dataset that natural images come from")
    split = models.CharField(
        max_length=11,
        blank=True,
        default=PROBE,
        help_text="probe; development for what a run tried; empty if it was measured before datasets were split",
    )
    options = stored.ShapedJSONField(
        shape=dict[str, stored.Scalar], help_text="toolset, writer, judge, seed, sizes, cost limit"
    )
    status = models.CharField(max_length=10, choices=CheckStatus.choices, default=CheckStatus.QUEUED, db_index=True)
    reason = models.TextField(blank=True, help_text="why it is unfinished, cannot be tested, or failed")
    created = models.DateTimeField(default=timezone.now)
    measured = models.DateTimeField(null=True, blank=True)
    beat = models.DateTimeField(default=timezone.now, help_text="when its worker was last known to be at it")
    waits_for_people = models.BooleanField(
        default=False, db_index=True, help_text="whether people are asked what its images show"
    )
    seconds = models.FloatField(default=0.0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.FloatField(default=0.0, help_text="US dollars, as far as prices are known")

    # The main figures, for lists; `result` has the rest.
    pearson = models.FloatField(null=True, help_text="r of activation and presence on natural images")
    pearson_low = models.FloatField(null=True)
    pearson_high = models.FloatField(null=True)
    p_value = models.FloatField(null=True, help_text="of r = 0, by a permutation test; empty if it was not tested")
    auprc = models.FloatField(null=True)
    auprc_low = models.FloatField(null=True)
    auprc_high = models.FloatField(null=True)
    base_rate = models.FloatField(null=True, help_text="AUPRC of a label that says nothing")
    generated_auc = models.FloatField(null=True, help_text="AUC of 7 + 7 generated images")
    kept = stored.ShapedJSONField(
        default=dict, blank=True, help_text="prompts written and answers given, so that nothing is paid for twice"
    )
    reading = stored.ShapedJSONField(
        default=dict, blank=True, help_text="a `record.label_checks.LabelReading`; empty if it is taken as written"
    )
    result = stored.ShapedJSONField(default=dict, blank=True, help_text="a `record.label_checks.CheckResult`")

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["unit", "-pearson"], name="checks_of_a_unit")]

    def __str__(self) -> str:
        return f"check of “{self.text[:60]}” for {self.unit}"

    def get_absolute_url(self) -> str:
        return reverse("label-check", args=[self.pk])

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_CHECKS

    @property
    def is_measured(self) -> bool:
        return self.pearson is not None or self.generated_auc is not None


class Evaluation(models.Model):
    """A measurement of how right labels are. Its plan is in its items, its progress in its job."""

    kind = models.CharField(max_length=10, help_text="a key of `workers.record.evaluation_kinds.KINDS`")
    name = models.CharField(max_length=120)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="evaluations")
    created = models.DateTimeField(default=timezone.now)
    backbone = models.CharField(max_length=40, blank=True)
    backbone_model = models.CharField(max_length=200, blank=True)
    seed = models.BigIntegerField(default=0)
    options = stored.ShapedJSONField(
        shape=stored.EvaluationOptions, default=dict, blank=True, help_text="units, model, dataset, sources, toolset"
    )
    cost_limit = models.FloatField(null=True, help_text="US dollars for the whole; empty for none")
    seconds_limit = models.FloatField(null=True, help_text="seconds of work for the whole; empty for none")
    unpriced = models.BooleanField(default=False, help_text="whether a backbone without a known price may be asked")
    job = models.OneToOneField("experiments.Job", models.SET_NULL, null=True, related_name="evaluation")
    planned = models.BooleanField(default=False, help_text="whether its items are there")
    seconds = models.FloatField(default=0.0, help_text="seconds of work so far")
    prepared = stored.ShapedJSONField(default=dict, blank=True, help_text="what was trained or drawn before the items")
    result = stored.ShapedJSONField(default=dict, blank=True, help_text="a `record.evaluations.EvaluationResult`")

    class Meta:
        ordering = ["-created", "-pk"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("evaluation", args=[self.pk])

    @property
    def row_of_kind(self) -> KindRow:
        """Return the properties of its kind."""
        return find_kind(self.kind)


class ItemStatus(models.TextChoices):
    PLANNED = "planned", "Planned"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    LACKING = "lacking", "No label"


class EvaluationItem(models.Model):
    """One unit by one source: the run or label, its check, and its score."""

    evaluation = models.ForeignKey(Evaluation, models.CASCADE, related_name="items", db_index=False)
    position = models.PositiveIntegerField(help_text="counts the evaluation's items from 1, in the order they are done")
    group = models.CharField(max_length=60, help_text="what its figure is averaged over: a layer, a kind of neuron")
    source = models.CharField(max_length=300, help_text="who gives the label: agent, one-shot, import:milan, …")
    unit = models.ForeignKey("experiments.Unit", models.SET_NULL, null=True, related_name="evaluation_items")
    unit_name = models.CharField(max_length=500, help_text="outlives the catalogue")
    options = stored.ShapedJSONField(
        shape=dict[str, stored.Scalar], default=dict, blank=True, help_text="what this item does otherwise: a toolset"
    )
    status = models.CharField(max_length=8, choices=ItemStatus.choices, default=ItemStatus.PLANNED)
    reason = models.TextField(blank=True, help_text="why it failed, or has no label")
    run = models.ForeignKey("experiments.Run", models.SET_NULL, null=True, related_name="evaluation_items")
    label = models.TextField(blank=True)
    label_check = models.ForeignKey(LabelCheck, models.SET_NULL, null=True, related_name="items")
    scores = stored.ShapedJSONField(
        shape=dict[str, stored.Scalar], default=dict, blank=True, help_text="name -> what it scored"
    )
    evidence = stored.ShapedJSONField(
        shape=dict[str, list[str]], default=dict, blank=True, help_text="keys of images, by set: with, without"
    )
    seconds = models.FloatField(default=0.0)

    class Meta:
        ordering = ["evaluation", "position"]
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "position"], name="one_evaluation_item_per_position")
        ]

    def __str__(self) -> str:
        return f"{self.source} on {self.unit_name}"


class GeneratedImage(models.Model):
    """An image that was generated for checks: the same generator, prompt and seed are drawn only once."""

    generator = models.CharField(max_length=300, help_text="key and revision")
    prompt_hash = models.CharField(max_length=64, help_text="SHA-256 of the prompt")
    prompt = models.TextField()
    seed = models.BigIntegerField()
    image = models.ForeignKey("experiments.Image", models.CASCADE, null=True, related_name="generated_for_checks")
    refused = models.TextField(blank=True, help_text="why nothing was drawn")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["generator", "prompt_hash", "seed"], name="one_generated_image_per_prompt_and_seed"
            )
        ]

    def __str__(self) -> str:
        return f"{self.generator}: {self.prompt[:60]} ({self.seed})"


class Measurement(models.Model):
    """What a system answered to an image outside of any run: measured once, shared by all checks."""

    system = models.CharField(max_length=64, help_text="SHA-256 of kind, model with revision, layer, unit and options")
    image = models.ForeignKey("experiments.Image", models.CASCADE, related_name="measurements", db_index=False)
    activation = models.FloatField()
    masked = models.ForeignKey("experiments.Image", models.CASCADE, null=True, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["image", "system"], name="one_measurement_per_image_and_system")]

    def __str__(self) -> str:
        return f"{self.image_id[:12]}: {self.activation}"
