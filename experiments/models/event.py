"""One thing that happened in a run. Append-only; written by `transcript.append` alone.

Kinds and the fields of each payload are the dataclasses of `workers/agent/events.py`.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class Event(models.Model):
    """`seq` counts a run's events from 1 without gaps. Images appear in the payload as keys only."""

    run = models.ForeignKey("experiments.Run", models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    payload = models.JSONField()
    time = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["run", "seq"]
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="one_event_per_seq")]

    def __str__(self) -> str:
        return f"run {self.run_id} #{self.seq} {self.kind}"
