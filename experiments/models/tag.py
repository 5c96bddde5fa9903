"""Tags: short words by which a team finds runs, experiments and images again."""

from __future__ import annotations

from django.db import models

TAG_CHARS = 40


class Tag(models.Model):
    name = models.CharField(max_length=TAG_CHARS, unique=True)
    runs = models.ManyToManyField("experiments.Run", related_name="tags", blank=True)
    experiments = models.ManyToManyField("experiments.Experiment", related_name="tags", blank=True)
    observations = models.ManyToManyField("experiments.Observation", related_name="tags", blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
