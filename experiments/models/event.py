"""One thing that happened in a run. Append-only; written by `transcript.append` alone.

Kinds and the fields of each payload are the dataclasses of `workers/record/events.py`.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.functional import cached_property

from workers.record.decoding import read
from workers.record.events import Kind, Payload, kind_of


class Event(models.Model):
    """`seq` counts a run's events from 1 without gaps. Images appear in the payload as keys only.

    `payload` is the JSON as it is stored; everybody reads `content`.
    """

    run = models.ForeignKey("experiments.Run", models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
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
        """What the event says, decoded. It has every field of its kind."""
        return self._read[0]

    @property
    def is_unreadable(self) -> bool:
        """Whether some of what is stored is not what its kind holds: empty fields of `content` then stand for it."""
        return not self._read[1]

    @property
    def row(self) -> Kind:
        """What holds for events of this kind."""
        return kind_of(self.kind)

    @property
    def round(self) -> int | None:
        """The round that it belongs to; None for one of the run as a whole."""
        return getattr(self.content, "round", None)

    @property
    def number(self) -> int:
        """Which experiment it starts or ends; 0 for other events."""
        return getattr(self.content, "number", 0)

    def __str__(self) -> str:
        return f"run {self.run_id} #{self.seq} {self.kind}"
