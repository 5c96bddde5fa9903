"""Questions that are measured only once, however often they are asked. A worker writes the answer; a job has the
progress."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.db import models
from django.utils import timezone

from experiments.models import stored
from experiments.models.job import JobStatus


class AskedOnce(models.Model):
    """Base of all such questions."""

    key = models.CharField(max_length=64, unique=True, help_text="hash of all that the answer depends on")
    created = models.DateTimeField(default=timezone.now)
    job = models.ForeignKey("experiments.Job", models.SET_NULL, null=True, related_name="%(class)ss")
    result = stored.ShapedJSONField(default=dict, blank=True, help_text="plain JSON of the report in workers.record")
    measured = models.DateTimeField(null=True, help_text="empty until a worker has measured it")

    class Meta:
        abstract = True
        ordering = ["-pk"]

    @property
    def status(self) -> str:
        """Return the status of its job; "done" once it is measured."""
        return "done" if self.measured else self.job.status if self.job else "stopped"

    @property
    def is_moving(self) -> bool:
        return self.measured is None and self.job is not None and self.job.is_moving

    @property
    def has_failed(self) -> bool:
        return self.status == JobStatus.FAILED

    @property
    def problem(self) -> str:
        """Return why it was stopped or failed; "" otherwise."""
        return self.job.result if self.job and self.status in ("stopped", "failed") else ""


def hash_question(*of: Any) -> str:
    """Return the key of a question, given as plain JSON."""
    # Equal questions must give equal text, so callers pass lists in a fixed order.
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()
