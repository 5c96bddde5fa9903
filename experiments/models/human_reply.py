"""What a person writes in a round: saved as a draft, and read by the worker once it is sent."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from experiments.models import stored
from experiments.models.run import Run

WRITTEN = ("what", "hypotheses", "prose", "program", "description", "labels", "reasoning", "bias")
"""Fields that a person writes."""


class ReplyPurpose(models.TextChoices):
    """The purpose of a reply; only its part is sent."""

    EXPERIMENT = "experiment", "Experiment"
    CONCLUSION = "conclusion", "Conclusion"


class HumanReply(models.Model):
    """One person's reply in one round. Several people may write drafts; only one reply is sent."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="human_replies")
    round = models.PositiveIntegerField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="human_replies")

    what = models.CharField(max_length=10, choices=ReplyPurpose.choices, default=ReplyPurpose.EXPERIMENT)
    prose = models.TextField(blank=True)
    hypotheses = stored.ShapedJSONField(
        shape=list[stored.DraftHypothesis], default=list, blank=True, help_text="[{number, text, status, reason}, …]"
    )
    program = models.TextField(blank=True)
    description = models.TextField(blank=True)
    labels = models.TextField(blank=True, help_text="one a line")
    reasoning = models.TextField(blank=True)
    bias = models.TextField(blank=True)

    version = models.PositiveIntegerField(default=0, help_text="counts what was saved, so that two tabs are told apart")
    saved = models.DateTimeField(default=timezone.now)
    sent = models.DateTimeField(null=True, blank=True)
    stopped_by = models.CharField(max_length=150, blank=True, help_text="who stopped its program while it ran")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "round", "author"], name="one_draft_for_each_person_and_round"),
            # Several people may write drafts; only one reply is sent.
            models.UniqueConstraint(
                fields=["run", "round"], condition=models.Q(sent__isnull=False), name="one_reply_for_each_round"
            ),
        ]

    @property
    def values(self) -> dict[str, Any]:
        """Return what was written, by field name."""
        return {name: getattr(self, name) for name in WRITTEN}

    def __str__(self) -> str:
        return f"round {self.round} of run {self.run_id} by {self.author}"
