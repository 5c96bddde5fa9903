"""What is shown of the unit of a pair: its exemplars, masked and raw, or for a synthetic neuron the truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db.models import Count, QuerySet

from experiments.models import Exemplar, Unit, UnitProfile

SHOWN = 10
"""Exemplars of a unit that a judge sees, the strongest."""
CONCEPT = "concept"
"""Kind of a layer whose units respond to what their names say."""


def truths(units: QuerySet[Unit]) -> dict[int, str]:
    """What synthetic neurons respond to, by id of the unit."""
    rows = units.filter(layer__kind=CONCEPT).select_related("layer")
    return {unit.pk: unit.layer.name_of(unit.number) for unit in rows if unit.layer.name_of(unit.number)}


def profiles(units: QuerySet[Unit]) -> dict[int, int]:
    """By id of the unit its profile with the most exemplars, of equals the latest."""
    rows = UnitProfile.objects.filter(unit__in=units.order_by().values("pk"), written__isnull=False)
    counted = rows.annotate(seen=Count("exemplars")).filter(seen__gt=0).order_by("seen", "written", "pk")
    return dict(counted.values_list("unit_id", "pk"))


def exemplars(of: Iterable[int]) -> Mapping[int, list[Exemplar]]:
    """The exemplars of these profiles, in one query."""
    found: dict[int, list[Exemplar]] = {}
    for each in Exemplar.objects.filter(profile__in=set(of), rank__lte=SHOWN).order_by("profile", "rank"):
        found.setdefault(each.profile_id, []).append(each)
    return found
