"""Columns for an image's activation map: where it activates the system."""

from __future__ import annotations

from typing import Any

from django.db import models

from workers.record.experiments import ActivationMap


class MappedImage(models.Model):
    """A row with the activation map of its image; all columns are empty if none was kept."""

    map = models.ForeignKey(
        "experiments.Image", models.PROTECT, null=True, related_name="+", help_text="where it drives the system, grey"
    )
    map_low = models.FloatField(null=True, help_text="what the black of the map stands for")
    map_high = models.FloatField(null=True, help_text="what the white of the map stands for")
    map_threshold = models.FloatField(null=True, help_text="above it the masked image is bright")

    class Meta:
        abstract = True

    @property
    def activation_map(self) -> ActivationMap | None:
        low, high, threshold = self.map_low, self.map_high, self.map_threshold
        if self.map_id is None or low is None or high is None or threshold is None:
            return None
        return ActivationMap(self.map_id, low, high, threshold)


MAP_COLUMNS = ("map", "map_low", "map_high", "map_threshold")


def list_map_columns(known: ActivationMap | None) -> dict[str, Any]:
    """Return the columns of a map with their values."""
    if known is None:
        return {}
    return {"map_id": known.image, "map_low": known.low, "map_high": known.high, "map_threshold": known.threshold}
