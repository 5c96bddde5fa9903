"""A unit over a dataset, as the form and the unit's page show it: read, or asked of a worker."""

from __future__ import annotations

from typing import Any

from django.core.cache import cache

from experiments.core import notify, queue
from experiments.models import Dataset, Layer, Unit, UnitProfile

ASK_AGAIN = 30
"""Seconds after which exemplars that have not come are asked for again: Redis may have lost the request."""


def read_profile(layer: Layer, number: int, dataset: Dataset, again: bool) -> dict[str, Any]:
    """The unit over the dataset, its exemplars once there are some; asks a worker for them if there are none."""
    found, _ = Unit.objects.get_or_create(layer=layer, number=number)
    profile, _ = UnitProfile.objects.get_or_create(unit=found, dataset=dataset)
    if again and profile.problem:
        profile.problem = ""
        profile.save(update_fields=["problem"])
        cache.delete(f"asked-for-exemplars:{profile.pk}")
    if not (profile.written or profile.problem) and cache.add(f"asked-for-exemplars:{profile.pk}", True, ASK_AGAIN):
        queue.ask_for_exemplars(profile.pk)
    exemplars = list(profile.exemplars.all()) if profile.written else []
    return {
        "profile": profile,
        "exemplars": exemplars,
        "exemplar_mean": sum(each.activation for each in exemplars) / len(exemplars) if exemplars else None,
        "progress": None if profile.written else notify.read_report(f"profile:{profile.pk}"),
    }
