"""What the address of New trial asks for, what is wrong with it, and the trial that comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from experiments.models import Pair, PairwiseTrial, Unit
from experiments.pairwise import evidence, sources
from experiments.pairwise.sampling import Asked, Drawing, Drawn, drawn
from experiments.pairwise.sources import Source

MOST, USUAL = 2_000, 100
"""Pairs of two sources that a trial may have, and has unless somebody says otherwise."""
WORDS = 10
BIGGEST = 2**31 - 1


class NewTrial(forms.Form):
    """Which units, which sources, and how the judges are measured."""

    name = forms.CharField(max_length=80)
    source = forms.MultipleChoiceField(error_messages={"required": "Choose two sources or more."})
    model = forms.CharField(required=False, max_length=200)
    layer = forms.CharField(required=False, max_length=200)
    unit = forms.IntegerField(required=False, min_value=0, max_value=BIGGEST)
    q = forms.CharField(required=False, max_length=200)
    most = forms.IntegerField(min_value=1, max_value=MOST, initial=USUAL)
    repeats = forms.IntegerField(min_value=0, max_value=100, initial=10)
    gold = forms.IntegerField(min_value=0, max_value=100, initial=10)
    seed = forms.IntegerField(min_value=0, max_value=BIGGEST, initial=0)

    NAMES = {
        "name": "Name",
        "source": "Sources",
        "unit": "Unit",
        "q": "Words",
        "most": "Pairs at most",
        "repeats": "Repeated",
        "gold": "Known answer",
        "seed": "Seed",
    }

    def __init__(self, data: Mapping[str, Any], listed: Sequence[Source]) -> None:
        super().__init__(data)
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
    def asked(self) -> Asked:
        """Of a form without problems."""
        given = self.cleaned_data
        return Asked(given["source"], given["most"], given["gold"] / 100, given["repeats"] / 100, given["seed"])

    def units(self) -> QuerySet[Unit]:
        """The units that the filter chooses, by their place and the words of any of their labels."""
        columns = {"model": "layer__model__name", "layer": "layer__name", "unit": "number"}
        given = {column: self.cleaned_data[name] for name, column in columns.items()}
        found = Unit.objects.filter(**{column: value for column, value in given.items() if value not in (None, "")})
        for word in self.cleaned_data["q"].split()[:WORDS]:
            found = found.filter(pk__in=Unit.objects.filter(labels__text__icontains=word).order_by().values("pk"))
        return found


@dataclass(frozen=True)
class Draft:
    """A trial that could be made: its pairs, and what there is to show of their units."""

    drawing: Drawing
    truths: Mapping[int, str]
    profiles: Mapping[int, int]


def drafted(form: NewTrial) -> Draft:
    """The trial that a form without problems asks for."""
    said = sources.said_of(form.units(), form.asked.sources)
    units = form.units().filter(pk__in=[unit for unit, known in said.items() if len(known) > 1])
    truths = evidence.truths(units)
    profiles = {unit: pk for unit, pk in evidence.profiles(units).items() if unit not in truths}
    return Draft(drawn(form.asked, said, frozenset(truths) | frozenset(profiles)), truths, profiles)


@transaction.atomic
def make(form: NewTrial, draft: Draft, by: User, query: str) -> PairwiseTrial:
    """Save the trial with its pairs."""
    asked = form.asked
    trial = PairwiseTrial.objects.create(
        name=form.cleaned_data["name"],
        owner=by,
        sources=list(asked.sources),
        query=query,
        gold_share=asked.gold_share,
        repeat_share=asked.repeat_share,
        seed=asked.seed,
        left_out=dict(draft.drawing.left_out),
    )
    names = {
        unit.pk: str(unit)
        for unit in Unit.objects.filter(pk__in={pair.unit for pair in draft.drawing.pairs}).select_related(
            "layer__model"
        )
    }
    rows = [row(trial, place, pair, draft, names) for place, pair in enumerate(draft.drawing.pairs, 1)]
    Pair.objects.bulk_create(rows)
    again = [(made, pair.original) for made, pair in zip(rows, draft.drawing.pairs, strict=True)]
    for made, original in again:
        made.original = rows[original] if original is not None else None
    Pair.objects.bulk_update([made for made, original in again if original is not None], ["original"])
    return trial


def row(trial: PairwiseTrial, place: int, pair: Drawn, draft: Draft, names: Mapping[int, str]) -> Pair:
    a, b = pair.statements
    return Pair(
        trial=trial,
        position=place,
        kind=pair.kind,
        unit_id=pair.unit,
        unit_name=names[pair.unit][:500],
        profile_id=draft.profiles.get(pair.unit),
        truth=draft.truths.get(pair.unit, "")[:500],
        text_a=a.text,
        text_b=b.text,
        source_a=pair.sources[0],
        source_b=pair.sources[1],
        label_a_id=a.label,
        label_b_id=b.label,
    )
