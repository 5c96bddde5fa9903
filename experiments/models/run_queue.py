"""Queues whose runs take turns at the workers."""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings
from django.db import models

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""Last visit of a queue that was never visited, so that it is next."""


class RunQueue(models.Model):
    """The runs of one person or one sweep, as one queue among others. Workers visit queues in turn; see
    `workers.jobs.turns`."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="run_queues")
    sweep = models.OneToOneField("experiments.Sweep", models.CASCADE, null=True, blank=True, related_name="run_queue")
    enabled = models.BooleanField(default=True, help_text="whether its runs may be claimed")
    weight = models.FloatField(default=1.0, help_text="its share of the work beside another's")
    deficit = models.FloatField(
        default=0.0, help_text="seconds of work that it was granted and has not had; below 0: it had more"
    )
    last_served = models.DateTimeField(default=LONG_AGO, help_text="when it last had its turn")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner"], condition=models.Q(sweep__isnull=True), name="one_run_queue_for_each_person"
            )
        ]

    def __str__(self) -> str:
        return f"runs of {self.sweep or self.owner}"
