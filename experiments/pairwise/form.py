"""What the address of New trial asks for, what is wrong with it, and which pairs would come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.db.models import Count, QuerySet
from django.http import QueryDict

from experiments.models import Unit, UnitProfile
from experiments.models.pairwise import PairKind
from experiments.pairwise import sources
from experiments.pairwise.sampling import PairPlan, TrialOptions, plan_pairs
from experiments.pairwise.sources import LabelSource

MOST, USUAL = 2_000, 100
"""Pairs of two sources that a trial may have, and has unless somebody says otherwise."""
USUALLY = {"most": str(USUAL), "repeats": "10", "known_answers": "10", "seed": "0"}
OF_UNITS = ("model", "layer", "unit", "q")
WORDS = 10
BIGGEST = 2**31 - 1
CONCEPT = "concept"
"""Kind of a layer whose units respond to what their names say."""


class NewTrial(forms.Form):
    """Which units, which sources, and how the judges are measured."""

    name = forms.CharField(max_length=80)
    source = forms.MultipleChoiceField(error_messages={"required": "Choose two sources or more."})
    model = forms.CharField(required=False, max_length=200)
    layer = forms.CharField(required=False, max_length=200)
    unit = forms.IntegerField(required=False, min_value=0, max_value=BIGGEST)
    q = forms.CharField(required=False, max_length=200)
    most = forms.IntegerField(min_value=1, max_value=MOST)
    repeats = forms.IntegerField(min_value=0, max_value=100)
    known_answers = forms.IntegerField(min_value=0, max_value=100)
    seed = forms.IntegerField(min_value=0, max_value=BIGGEST)

    NAMES = {
        "name": "Name",
        "source": "Sources",
        "unit": "Unit",
        "q": "Words",
        "most": "Pairs at most",
        "repeats": "Repeated",
        "known_answers": "Known answer",
        "seed": "Seed",
    }

    def __init__(self, data: QueryDict, listed: Sequence[LabelSource]) -> None:
        typed = data.copy()
        for name, value in USUALLY.items():
            typed.setdefault(name, value)
        super().__init__(typed)
        cast("forms.MultipleChoiceField", self.fields["source"]).choices = [(each.key, each.words) for each in listed]

    def clean_source(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["source"]
        if len(chosen) < 2:
            raise forms.ValidationError("Choose two sources or more.")
        return chosen

    @property
    def problems(self) -> list[str]:
        """Sentences that name the field."""
        return [
            f"{self.NAMES.get(name, name)}: {message}" for name, messages in self.errors.items() for message in messages
        ]

    @property
    def options(self) -> TrialOptions:
        """Of a form without problems."""
        given = self.cleaned_data
        shares = (given["known_answers"] / 100, given["repeats"] / 100)
        return TrialOptions(given["source"], given["most"], *shares, given["seed"])

    @property
    def query(self) -> str:
        """Which units, as in an address."""
        chosen = QueryDict(mutable=True)
        chosen.update({name: str(self.data[name]) for name in OF_UNITS if self.data.get(name)})
        return chosen.urlencode()

    def units(self) -> QuerySet[Unit]:
        """The units that the filter chooses, by their place and the words of any of their labels."""
        columns = {"model": "layer__model__name", "layer": "layer__name", "unit": "number"}
        given = {column: self.cleaned_data[name] for name, column in columns.items()}
        found = Unit.objects.filter(**{column: value for column, value in given.items() if value not in (None, "")})
        for word in self.cleaned_data["q"].split()[:WORDS]:
            found = found.filter(pk__in=Unit.objects.filter(labels__text__icontains=word).order_by().values("pk"))
        return found


@dataclass(frozen=True)
class TrialDraft:
    """A trial that could be made: its pairs, and what there is to show of their units."""

    plan: PairPlan
    truths: Mapping[int, str]
    profiles: Mapping[int, int]

    @property
    def counts(self) -> dict[str, Any]:
        return {kind: self.plan.count(kind) for kind in PairKind.values}


def draft_trial(form: NewTrial) -> TrialDraft:
    """The trial that a form without problems asks for."""
    known = sources.labels_of(form.units(), form.options.sources)
    units = form.units().filter(pk__in=[unit for unit, labels in known.items() if len(labels) > 1])
    # What synthetic neurons respond to, by id of the unit
    rows = units.filter(layer__kind=CONCEPT).select_related("layer")
    truths = {unit.pk: unit.layer.name_of(unit.number) for unit in rows if unit.layer.name_of(unit.number)}
    profiles = {unit: pk for unit, pk in _profiles(units).items() if unit not in truths}
    return TrialDraft(plan_pairs(form.options, known, frozenset(truths) | frozenset(profiles)), truths, profiles)


def _profiles(units: QuerySet[Unit]) -> dict[int, int]:
    """By id of the unit its profile with the most exemplars, of equals the latest."""
    rows = UnitProfile.objects.filter(unit__in=units.order_by().values("pk"), written__isnull=False)
    counted = rows.annotate(seen=Count("exemplars")).filter(seen__gt=0).order_by("seen", "written", "pk")
    return dict(counted.values_list("unit_id", "pk"))
