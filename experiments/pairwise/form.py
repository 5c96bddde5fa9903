"""Parse the form of New trial, explain its errors, and draft the pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from django import forms
from django.db.models import Count, QuerySet
from django.http import QueryDict

from experiments.core.params import MAX_COUNT
from experiments.display.form_fields import LiveForm, NumberText, offer_counted
from experiments.models import Pair, PairwiseTrial, Unit, UnitProfile
from experiments.pairwise import sources
from experiments.pairwise.lists import JudgeBackbone
from experiments.pairwise.sampling import plan_pairs
from experiments.pairwise.sources import LabelsBySource, LabelSource

MAX_PAIRS, DEFAULT_PAIRS = 2_000, 100
"""Maximum and default number of pairs per two sources."""
DEFAULTS = {"most": str(DEFAULT_PAIRS), "repeats": "10", "known_answers": "10", "seed": "0"}
OF_UNITS = ("circuits", "model", "layer", "unit", "q")
WORDS = 10
_AMOUNT = dict.fromkeys(("required", "invalid"), "Write an amount of money: 5 or 0.50.")
CONCEPT = "concept"
"""Kind of a layer whose units respond to what their names say."""


class NewTrial(LiveForm):
    """Which units, which sources, and how the judges are measured."""

    name = forms.CharField(
        max_length=80, widget=forms.TextInput(attrs={"placeholder": "Agent against MILAN on layer4"})
    )
    source = forms.MultipleChoiceField(
        label="Sources",
        help_text="two or more; each is compared with each",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose two sources or more."},
    )
    model = forms.CharField(
        required=False, max_length=200, widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"})
    )
    layer = forms.CharField(
        required=False, max_length=200, widget=forms.TextInput(attrs={"list": "layers", "autocomplete": "off"})
    )
    unit = forms.IntegerField(required=False, min_value=0, max_value=MAX_COUNT, widget=NumberText)
    q = forms.CharField(label="Words of a label", required=False, max_length=200)
    circuits = forms.BooleanField(label="Circuits, in place of units", required=False)
    most = forms.IntegerField(label="Pairs at most", min_value=1, max_value=MAX_PAIRS, widget=NumberText)
    repeats = forms.IntegerField(label="Repeat pairs, %", min_value=0, max_value=100, widget=NumberText)
    known_answers = forms.IntegerField(label="Attention checks, %", min_value=0, max_value=100, widget=NumberText)
    seed = forms.IntegerField(min_value=0, max_value=MAX_COUNT, widget=NumberText)

    def __init__(self, data: QueryDict, listed: Sequence[LabelSource], *, untouched: bool = False) -> None:
        """Fill in the form. One that is untouched is not checked."""
        typed = data.copy()
        for name, value in DEFAULTS.items():
            typed.setdefault(name, value)
        super().__init__(None if untouched else typed, initial=typed.dict())
        sources = cast("forms.MultipleChoiceField", self.fields["source"])
        sources.choices = offer_counted((each.key, each.words, each.labels) for each in listed)

    def clean_source(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["source"]
        if len(chosen) < 2:
            raise forms.ValidationError("Choose two sources or more.")
        return chosen

    @property
    def trial(self) -> PairwiseTrial:
        """Return the unsaved trial that a valid form describes."""
        given, units = self.cleaned_data, QueryDict(mutable=True)
        units.update({name: str(given[name]) for name in OF_UNITS if given[name] not in (None, "", False)})
        return PairwiseTrial(
            name=given["name"],
            sources=given["source"],
            query=units.urlencode(),
            known_answer_share=given["known_answers"] / 100,
            repeat_share=given["repeats"] / 100,
            seed=given["seed"],
        )

    def units(self) -> QuerySet[Unit]:
        """Return the units or circuits that the filter selects, by place and by words of any of their labels."""
        columns = {"model": "layer__model__name", "layer": "layer__name", "unit": "number"}
        given = {column: self.cleaned_data[name] for name, column in columns.items()}
        found = Unit.objects.filter(members__isnull=not self.cleaned_data["circuits"])
        found = found.filter(**{column: value for column, value in given.items() if value not in (None, "")})
        # A filter for each word: they may be in different labels of the unit.
        for word in self.cleaned_data["q"].split()[:WORDS]:
            found = found.filter(pk__in=Unit.objects.filter(labels__text__icontains=word).order_by().values("pk"))
        return found


class AskJudge(forms.Form):
    """A model that is to judge, and what it may cost."""

    backbone = forms.CharField(required=False, widget=forms.Select)
    cost = forms.FloatField(
        label="At most, US dollars", initial=5, widget=NumberText({"inputmode": "decimal"}), error_messages=_AMOUNT
    )
    unpriced = forms.BooleanField(label="Without a known price", required=False)

    def offer(self, backbones: Iterable[JudgeBackbone]) -> None:
        """Fill the list, with why one is not ready."""
        notes = ((each, "not ready" if each.lacks else "price unknown" if each.unpriced else "") for each in backbones)
        choices = [(each.value, f"{each.label} ({note})" if note else each.label) for each, note in notes]
        cast("forms.Select", self.fields["backbone"].widget).choices = choices


def draft_trial(form: NewTrial) -> tuple[PairwiseTrial, list[Pair]]:
    """Return the trial of a valid form with its pairs and what to show of each. Nothing is saved."""
    trial = form.trial
    known = sources.labels_of(form.units(), trial.sources)
    # Only these can make a pair.
    several = form.units().filter(pk__in=[unit for unit, labels in known.items() if len(labels) > 1])
    return trial, draw_pairs(trial, form.cleaned_data["most"], known, several)


def draw_pairs(trial: PairwiseTrial, most: int, known: LabelsBySource, several: QuerySet[Unit]) -> list[Pair]:
    """Return the pairs of a trial with what to show of each. `several` are the units labelled by more than one
    source."""
    # What synthetic neurons respond to, by id of the unit
    rows = several.filter(layer__kind=CONCEPT).select_related("layer")
    truths = {unit.pk: unit.layer.name_of(unit.number) for unit in rows if unit.layer.name_of(unit.number)}
    # Of the others the profile with the most exemplars, of equals the latest
    written = UnitProfile.objects.filter(unit__in=several.order_by().values("pk"), written__isnull=False)
    counted = written.exclude(unit__in=truths).annotate(seen=Count("exemplars")).filter(seen__gt=0)
    # Ascending: the last row of a unit stays in the dictionary.
    profiles = dict(counted.order_by("seen", "written", "pk").values_list("unit_id", "pk"))
    pairs = plan_pairs(trial, most, known, truths.keys() | profiles.keys())
    for pair in pairs:
        unit = pair.unit_id or 0
        pair.profile_id, pair.truth = profiles.get(unit), truths.get(unit, "")[:500]
    return pairs
