"""Labels of units, from runs and elsewhere."""

from __future__ import annotations

from django.db import models

from experiments.models import stored


class Label(models.Model):
    """A short text that says what a unit responds to, and who says so."""

    units = models.ManyToManyField("experiments.Unit", related_name="labels")
    text = models.TextField()
    source = models.CharField(max_length=40, help_text="run, person, import or baseline")
    run = models.ForeignKey("experiments.Run", models.CASCADE, null=True, related_name="label_set")
    position = models.PositiveIntegerField(default=1)
    scores = stored.ShapedJSONField(shape=dict[str, stored.Scalar], default=dict, blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.text
