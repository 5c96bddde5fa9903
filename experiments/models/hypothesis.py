"""Hypotheses: one line of the agent's list in one round, with what the agent says of it."""

from __future__ import annotations

from django.db import models


class Hypothesis(models.Model):
    run = models.ForeignKey("experiments.Run", models.CASCADE, related_name="hypotheses")
    round = models.PositiveIntegerField()
    number = models.PositiveIntegerField()
    text = models.TextField()
    status = models.CharField(max_length=10, default="open")
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["run", "round", "number"]
        verbose_name_plural = "hypotheses"
        constraints = [models.UniqueConstraint(fields=["run", "round", "number"], name="one_hypothesis_per_number")]

    def __str__(self) -> str:
        return f"run {self.run_id} round {self.round} H{self.number}: {self.text[:60]}"
