"""Searches for circuits: the units or latents of a layer that a class depends on."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.urls import reverse

from experiments.models.asked_once import AskedOnce, hash_question
from experiments.models.catalogue import Layer
from experiments.models.dataset import Dataset


class CircuitSearch(AskedOnce):
    """What to search for, and where; `result` is a workers.record.circuits.CircuitReport."""

    layer = models.ForeignKey("experiments.Layer", models.CASCADE, related_name="circuit_searches")
    dataset = models.ForeignKey("experiments.Dataset", models.CASCADE, related_name="circuit_searches")
    target = models.CharField(max_length=200, help_text="name or number of the class")
    images = models.PositiveIntegerField(help_text="on which the class is seen most")
    seeds = models.PositiveIntegerField()

    class Meta(AskedOnce.Meta):
        verbose_name = "circuit search"
        verbose_name_plural = "circuit searches"

    def __str__(self) -> str:
        return f"{self.target} in {self.layer}"

    def get_absolute_url(self) -> str:
        return reverse("circuit-search", args=[self.pk])

    @staticmethod
    def key_of(layer: Layer, dataset: Dataset, **asked: Any) -> str:
        """Return a key that is equal for the same question about the same weights and images."""
        of = [layer.pk, layer.model.revision, dataset.key, dataset.revision]
        return hash_question(*of, *sorted(asked.items()))
