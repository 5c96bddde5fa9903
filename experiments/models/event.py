"""Events of runs. Append-only; written only by `transcript.append`.

The dataclasses of `workers/record/events.py` define the kinds and the fields of each payload.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.functional import cached_property

from workers.record.decoding import read
from workers.record.events import Kind, Payload, kind_of


class Event(models.Model):
    """One event. `seq` counts a run's events from 1 without gaps. The payload holds images as keys only.

    `payload` is the JSON as stored; read `content` instead.
    """

    run = models.ForeignKey("experiments.Run", models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    # Read `content` instead, which has every field of its kind.
    payload = models.JSONField()
    time = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["run", "seq"]
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="one_event_per_seq")]

    @cached_property
    def _read(self) -> tuple[Payload, bool]:
        return read(self.kind, self.payload)

    @cached_property
    def content(self) -> Payload:
        """Return the decoded event, with every field of its kind."""
        return self._read[0]

    @property
    def is_unreadable(self) -> bool:
        """True if part of the stored payload does not fit its kind; `content` then has empty fields instead."""
        return not self._read[1]

    @property
    def row(self) -> Kind:
        """Return the properties of events of this kind."""
        return kind_of(self.kind)

    @property
    def round(self) -> int | None:
        """Return the event's round; None if it belongs to the run as a whole."""
        return getattr(self.content, "round", None)

    @property
    def number(self) -> int:
        """Return the experiment that it starts or ends; 0 for other events."""
        return getattr(self.content, "number", 0)

    def __str__(self) -> str:
        return f"run {self.run_id} #{self.seq} {self.kind}"
