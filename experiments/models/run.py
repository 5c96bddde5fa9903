"""Runs, each one execution of the agent on a query; and saved views of lists."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from experiments.models import stored
from workers import registry
from workers.record import tasks
from workers.record.circuits import CIRCUIT
from workers.record.limits import DEFAULT_LIMITS
from workers.record.statuses import ACTIVE, ENDED, Status


class Outcome(models.TextChoices):
    """What reviewers made of a run's conclusion: as `review.ReviewVerdict`, or that they disagree."""

    ACCEPT = "accept", "Accepted"
    REVISE = "revise", "To be revised"
    REJECT = "reject", "Rejected"
    SPLIT = "split", "Disputed"


def limits() -> dict[str, int | float]:
    """Return the limits of a new run."""
    return dict(DEFAULT_LIMITS)


VERDICT_COLUMNS = ("verdict", "verdict_final", "verdict_opinions", "verdict_agreeing")
"""The reviewers' verdict on a run; written only by `experiments.reviews.projection`."""


class Run(models.Model):
    """A run: its query, its status, its worker, what it used and what it found.

    The transcript is in `Event`; `transcript.append` updates all columns from `rounds` down with it.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="runs")
    created = models.DateTimeField(default=timezone.now, db_index=True)

    # The query. Names rather than keys: a run outlives the catalogue rows it was chosen from.
    question = models.TextField()
    task = models.CharField(max_length=20)
    system_kind = models.CharField(max_length=20, default="unit")
    model = models.CharField(max_length=200)
    layer = models.CharField(max_length=200)
    unit = models.PositiveIntegerField()
    options = stored.ShapedJSONField(shape=stored.Options, default=dict, blank=True)
    toolset = models.CharField(max_length=40, default="toybox")
    backbone = models.CharField(max_length=40)
    backbone_model = models.CharField(max_length=200, blank=True)
    limits = stored.ShapedJSONField(shape=stored.StoredLimits, default=limits)
    seed = models.BigIntegerField(default=0)
    parent = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="forks")
    fork_round = models.PositiveIntegerField(null=True, blank=True)
    fork_plan = stored.ShapedJSONField(
        default=dict, blank=True, help_text="who forked it, up to which event of its parent, with which changes"
    )

    # Its status.
    status = models.CharField(max_length=20, choices=Status.choices(), default=Status.QUEUED.value, db_index=True)
    reason = models.TextField(blank=True)
    cancel_requested = models.BooleanField(default=False)
    pause_requested = models.CharField(
        max_length=310, blank=True, help_text="who wants it paused before its next round"
    )

    # Where it waits for a worker: in the queue of its person or its sweep; in none while it runs in the foreground.
    sweep = models.ForeignKey("experiments.Sweep", models.PROTECT, null=True, blank=True, related_name="runs")
    sweep_place = models.PositiveIntegerField(
        default=0, db_default=0, help_text="in the order in which its sweep asks, from 1; 0 outside sweeps"
    )
    run_queue = models.ForeignKey("experiments.RunQueue", models.SET_NULL, null=True, blank=True, related_name="runs")
    due = models.DateTimeField(default=timezone.now, help_text="when it may be claimed")
    waiting_reason = models.TextField(blank=True, help_text="the outage for whose end it waits, no fault of its own")

    # Its worker, which holds the lease until it expires; every claim raises the fence.
    lease_worker = models.CharField(max_length=100, blank=True)
    lease_expires = models.DateTimeField(null=True, blank=True)
    taken = models.DateTimeField(null=True, blank=True, help_text="when its worker took it up")
    fence = models.PositiveIntegerField(default=0)
    claims = models.PositiveIntegerField(default=0, help_text="claims since the last event")

    # What it used.
    last_seq = models.PositiveIntegerField(default=0)
    rounds = models.PositiveIntegerField(default=0)
    experiment_count = models.PositiveIntegerField(default=0)
    observation_count = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.FloatField(default=0.0, help_text="US dollars, as far as prices are known")
    unpriced = models.BooleanField(default=False, help_text="whether it took tokens whose price is not known")
    seconds = models.FloatField(default=0.0, help_text="seconds of work, waits left out")
    image_bytes = models.PositiveBigIntegerField(
        default=0, db_default=0, help_text="bytes of images that its programs stored, at three a pixel"
    )
    exemplar_mean = models.FloatField(null=True, blank=True, help_text="mean activation of the exemplars")
    best_activation = models.FloatField(null=True, blank=True)
    started = models.DateTimeField(null=True, blank=True)
    ended = models.DateTimeField(null=True, blank=True)

    # What it found.
    versions = stored.ShapedJSONField(shape=dict[str, str], default=dict, blank=True)
    conclusion = stored.ShapedJSONField(shape=stored.StoredConclusion, default=dict, blank=True)
    score = stored.ShapedJSONField(
        shape=stored.StoredScore, default=dict, blank=True, help_text="how right a conclusion about a function is"
    )
    biases = stored.ShapedJSONField(
        shape=list[stored.StoredBias], default=list, blank=True, help_text="the biases it states, tested"
    )

    # The reviewers' verdict, kept by `reviews.projection`; `display.verdicts` says who may see it.
    verdict = models.CharField(max_length=8, choices=Outcome.choices, blank=True)
    verdict_final = models.BooleanField(default=False, help_text="whether one person settled it, with a reason")
    verdict_opinions = models.PositiveSmallIntegerField(default=0, help_text="submitted opinions of the run")
    verdict_agreeing = models.PositiveSmallIntegerField(default=0, help_text="of these, those with this verdict")

    # The score of its label on images that the agent never saw, kept by `workers.jobs.label_checks`.
    label_check = models.ForeignKey(
        "experiments.LabelCheck", models.SET_NULL, null=True, blank=True, related_name="runs"
    )

    class Meta:
        ordering = ["-created", "-pk"]
        # For the statuses of a unit's runs, and its newest run: neither query reads extra rows, however many runs
        # there are.
        indexes = [
            models.Index(fields=["model", "layer", "unit", "status"], name="runs_of_a_unit"),
            models.Index(fields=["model", "layer", "unit", "-created", "-id"], name="newest_runs_of_a_unit"),
            models.Index(fields=["verdict", "-id"], condition=~models.Q(verdict=""), name="reviewed_runs"),
            # For runs that a worker may claim: in a queue, runs under way first, and runs of a model that it holds.
            # The index is not limited to active runs, since SQLite cannot tell that a query with parameters needs
            # only those.
            models.Index(fields=["run_queue", "-status", "sweep_place", "id"], name="claimable_runs"),
            models.Index(
                fields=["run_queue", "model", "-status", "sweep_place", "id"], name="claimable_runs_of_a_model"
            ),
            models.Index(fields=["sweep", "status"], name="runs_of_a_sweep"),
        ]

    def __str__(self) -> str:
        # With the number of a synthetic neuron: audit and logs keep this text, and their readers may have yet to judge
        # what its name reveals.
        blind = registry.blind_name(self.system_kind, self.model, self.layer, self.unit)
        return f"run {self.pk}: {blind or self.system}"

    def get_absolute_url(self) -> str:
        return reverse("run", args=[self.pk])

    @property
    def system(self) -> str:
        if self.system_kind == CIRCUIT:
            return f"{self.model} / {self.circuit_name}"
        return f"{self.model} / {self.layer} / {'unit' if self.takes_images else 'function'} {self.unit}"

    @property
    def short_system(self) -> str:
        """Return the system without the model."""
        return self.circuit_name if self.system_kind == CIRCUIT else f"{self.layer} / {self.unit}"

    @property
    def circuit_name(self) -> str:
        """Return the name that its circuit had when the run was asked, else the number of its members."""
        name, count = self.options.get("circuit_name"), len(self.options.get("members", ()))
        return f"circuit “{name}”" if name else f"circuit of {count} member{'' if count == 1 else 's'}"

    @property
    def takes_images(self) -> bool:
        """Return False for a run on a function, which logs samples and no images."""
        return self.system_kind != tasks.FUNCTION

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED

    @property
    def is_pausing(self) -> bool:
        """True if a person asked for a pause and the worker has not finished the round."""
        return bool(self.pause_requested) and self.status in ACTIVE

    @property
    def known_cost(self) -> float | None:
        """Return the cost in US dollars; None if the price of something it used is unknown."""
        return None if self.unpriced else self.cost

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def labels(self) -> list[str]:
        return list(self.conclusion.get("labels", []))

    @property
    def statement(self) -> str:
        """Return its conclusion in prose."""
        return str(self.conclusion.get("description") or self.conclusion.get("bias") or "")

    def is_leased(self, now: datetime | None = None) -> bool:
        """True if a worker holds the run at this moment."""
        return self.lease_expires is not None and self.lease_expires > (now or timezone.now())


class ViewedList(models.TextChoices):
    """Lists whose views can be saved; each value is a URL name."""

    RUNS = "runs", "Runs"
    EXPERIMENTS = "experiments", "Experiments"
    UNITS = "units-search", "Units by label"
    SWEEPS = "sweeps", "Sweeps"
    EVALUATIONS = "evaluations", "Evaluations"
    REVIEW = "review", "Review"
    PAIRWISE = "pairwise", "Pairwise comparisons"
    SEARCH = "search", "Search"


class SavedView(models.Model):
    """A saved view of a list, for its owner or the whole team.

    `query` is the query string of the list's address, without the page number.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views")
    list = models.CharField(max_length=12, choices=ViewedList.choices, default=ViewedList.RUNS)
    name = models.CharField(max_length=60)
    query = models.TextField(blank=True)
    shared = models.BooleanField(default=False, help_text="the whole team sees it")
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "list", "name"], name="one_view_per_name")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"{reverse(self.list)}?{self.query}" if self.query else reverse(self.list)
