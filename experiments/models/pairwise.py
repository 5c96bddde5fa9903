"""Pairwise trials: labels of two sources side by side and blind, their judges and votes."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from experiments.models import stored

TEXT_CHARS = 10_000
SOURCE_CHARS = 300


class PairKind(models.TextChoices):
    PLAIN = "plain", "Two sources"
    REPEAT = "repeat", "Shown again, the other way round"
    KNOWN = "known", "Attention check"


class Answer(models.TextChoices):
    A = "a", "The first of the pair"
    B = "b", "The second of the pair"
    NEITHER = "neither", "Cannot tell"
    UNREAD = "unread", "No answer could be read"


class PairwiseTrial(models.Model):
    """A comparison of labels of several sources, two at a time. Sources are hidden until it is closed for good."""

    name = models.CharField(max_length=80)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="trials")
    created = models.DateTimeField(default=timezone.now)
    sources = stored.ShapedJSONField(shape=list[str], help_text="keys of the sources, in the order of the table")
    query = models.TextField(blank=True, help_text="which units, as in the address of the page that made it")
    known_answer_share = models.FloatField(
        default=0.1, help_text="pairs with a known answer, as a share of the plain ones"
    )
    repeat_share = models.FloatField(default=0.1, help_text="pairs that are shown twice, as a share of the plain ones")
    seed = models.BigIntegerField(default=0)
    left_out = stored.ShapedJSONField(
        shape=dict[str, int], default=dict, blank=True, help_text="why -> how many comparisons are not in it"
    )
    closed = models.DateTimeField(null=True, blank=True)
    evaluation = models.ForeignKey(
        "experiments.Evaluation",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="trials",
        help_text="whose labels are compared; empty for the labels that units have",
    )
    judges_wanted = models.PositiveIntegerField(
        null=True, blank=True, help_text="people that shall judge each pair; empty for no number, 0 for none"
    )

    class Meta:
        ordering = ["-created", "-pk"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("pairwise-trial", args=[self.pk])


class Pair(models.Model):
    """Two labels for one unit, as they were when the trial was created. In an attention check `a` is the right one."""

    trial = models.ForeignKey(PairwiseTrial, models.CASCADE, related_name="pairs", db_index=False)
    position = models.PositiveIntegerField(help_text="counts the trial's pairs from 1, in the order they are judged")
    kind = models.CharField(max_length=6, choices=PairKind.choices, default=PairKind.PLAIN)
    unit = models.ForeignKey("experiments.Unit", models.SET_NULL, null=True, related_name="pairs")
    unit_name = models.CharField(max_length=500, help_text="as in toybox / layer4 / unit 7; outlives the catalogue")
    profile = models.ForeignKey("experiments.UnitProfile", models.SET_NULL, null=True, related_name="+")
    truth = models.CharField(max_length=500, blank=True, help_text="what a synthetic neuron responds to")
    text_a = models.TextField()
    text_b = models.TextField()
    source_a = models.CharField(max_length=SOURCE_CHARS)
    source_b = models.CharField(max_length=SOURCE_CHARS)
    label_a = models.ForeignKey("experiments.Label", models.SET_NULL, null=True, related_name="+")
    label_b = models.ForeignKey("experiments.Label", models.SET_NULL, null=True, related_name="+")
    original = models.ForeignKey("self", models.CASCADE, null=True, related_name="repeats")

    class Meta:
        ordering = ["trial", "position"]
        constraints = [models.UniqueConstraint(fields=["trial", "position"], name="one_pair_per_position")]

    def __str__(self) -> str:
        return f"pair {self.position} of trial {self.trial_id}"


class Judge(models.Model):
    """A judge in a trial: a person, or a backbone with its cost limit and cost."""

    trial = models.ForeignKey(PairwiseTrial, models.CASCADE, related_name="judges", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    backbone = models.CharField(max_length=40, blank=True)
    backbone_model = models.CharField(max_length=200, blank=True)
    job = models.OneToOneField("experiments.Job", models.SET_NULL, null=True, related_name="judge")
    cost_limit = models.FloatField(default=5.0, help_text="US dollars")
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.FloatField(default=0.0, help_text="US dollars, as far as prices are known")
    unpriced = models.BooleanField(
        default=False, help_text="whether it may judge though its price is not known: its allowance then does not hold"
    )

    @property
    def known_cost(self) -> float | None:
        """Return the cost in US dollars; None if the price is unknown."""
        return None if self.unpriced else self.cost

    class Meta:
        ordering = ["trial", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["trial", "user"], condition=models.Q(user__isnull=False), name="one_judge_per_person"
            ),
            models.UniqueConstraint(
                fields=["trial", "backbone", "backbone_model"],
                condition=models.Q(user__isnull=True),
                name="one_judge_per_backbone",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user or self.backbone_model or self.backbone} in trial {self.trial_id}"


class Vote(models.Model):
    """A judge's choice in a pair. `swapped`: b was shown first."""

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="votes")
    judge = models.ForeignKey(Judge, models.CASCADE, related_name="votes", db_index=False)
    answer = models.CharField(max_length=7, choices=Answer.choices)
    swapped = models.BooleanField()
    seconds = models.FloatField(null=True, help_text="from the pair on screen to the answer, as the browser measured")
    time = models.DateTimeField(default=timezone.now)
    reply = models.TextField(blank=True, help_text="of a backbone, word for word")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["judge", "pair"], name="one_vote_per_pair")]

    def __str__(self) -> str:
        return f"{self.pair}: {self.answer}"
