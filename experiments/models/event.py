"""One thing that happened in a run. Append-only; written by `transcript.append` alone.

Kinds and the fields of each payload are the dataclasses of `workers/record/events.py`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

from django.db import models
from django.utils import timezone

from workers.record.decoding import encode, read


class Event(models.Model):
    """`seq` counts a run's events from 1 without gaps. Images appear in the payload as keys only.

    The payload of an event that was read has every field that its kind must have; `is_unreadable` says where one of
    them stands for something else, which no writer of ours left there.
    """

    is_unreadable = False

    run = models.ForeignKey("experiments.Run", models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    payload = models.JSONField()
    time = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["run", "seq"]
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="one_event_per_seq")]

    @classmethod
    def from_db(cls, db: str | None, field_names: Collection[str], values: Collection[Any], **options: Any) -> Self:
        event = super().from_db(db, field_names, values, **options)
        if {"kind", "payload"} <= set(field_names):
            content, whole = read(event.kind, event.payload)
            event.payload, event.is_unreadable = encode(content), not whole
        return event

    def __str__(self) -> str:
        return f"run {self.run_id} #{self.seq} {self.kind}"
