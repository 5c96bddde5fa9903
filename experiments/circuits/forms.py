"""The forms of circuits. The actions check their values, for pages and API alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Self

from django import forms

from experiments.circuits.actions import MAX_NAME
from experiments.core.compatibility import dataset_for
from experiments.display.form_fields import NumberText
from experiments.models import Circuit, Dataset, Layer


def _text(**attrs: Any) -> forms.TextInput:
    return forms.TextInput({"autocomplete": "off", **attrs})


def _name_datasets(datasets: Iterable[Dataset]) -> list[tuple[str, str]]:
    return [(each.key, (each.label or each.key)[:60]) for each in datasets]


class FindCircuit(forms.Form):
    """A class, a layer, and the images that show what the class depends on."""

    target = forms.CharField(
        label="Class", required=False, widget=_text(list="classes", placeholder="car", spellcheck="false")
    )
    layer = forms.CharField(required=False, widget=forms.Select)
    dataset = forms.CharField(required=False, widget=forms.Select)
    images = forms.CharField(required=False, widget=NumberText({"size": "5"}))
    seeds = forms.CharField(required=False, widget=NumberText({"size": "4"}))

    def offer(self, layers: Sequence[Layer], datasets: Iterable[Dataset]) -> Self:
        """Fill the lists with what there is to choose from."""
        by_model = [
            (name, [(each.pk, f"{each.name}, {each.units:,} {each.plural}") for each in found])
            # `list_layers` orders by model, which `groupby` needs.
            for name, found in groupby(layers, lambda each: each.model.name)
        ]
        self.fields["layer"].widget = forms.Select(choices=[("", "Choose a layer"), *by_model])
        self.fields["dataset"].widget = forms.Select(choices=[("", "The model's own"), *_name_datasets(datasets)])
        return self


class KeepFound(forms.Form):
    """How many of the strongest members become a circuit, and its name."""

    name = forms.CharField(required=False, widget=_text(maxlength=MAX_NAME))
    count = forms.CharField(label="Members", required=False, widget=NumberText({"size": "4"}))


class ChangeCircuit(forms.Form):
    """Name and note of a circuit."""

    name = forms.CharField(required=False, widget=forms.TextInput({"required": True}))
    note = forms.CharField(required=False, widget=forms.Textarea({"rows": 3}))


class ImportCircuit(forms.Form):
    """A file of a circuit."""

    file = forms.FileField(
        label="File of a circuit",
        help_text=".json, at most 1 MB",
        widget=forms.FileInput({"accept": ".json, application/json"}),
    )


class CompareCircuits(forms.Form):
    """Two circuits; the first one is hidden where it is fixed, on its own page."""

    a = forms.CharField(label="Circuit", required=False)
    b = forms.CharField(label="Compare with", required=False)

    def __init__(
        self,
        choices: Iterable[Circuit],
        first: Circuit | None,
        second: Circuit | None = None,
        *,
        is_fixed: bool = False,
    ) -> None:
        # The form is sent with GET and read by the page, so it is never bound.
        super().__init__(initial={"a": first and first.pk, "b": second and second.pk})
        options = [(each.pk, f"{each.name:.60} ({each.network:.30})") for each in choices]
        self.fields["a"].widget = forms.HiddenInput() if is_fixed else forms.Select(choices=options)
        self.fields["b"].widget = forms.Select(choices=options)


class ChooseDataset(forms.Form):
    """The dataset on whose images a circuit is measured."""

    dataset = forms.CharField(required=False, widget=forms.Select)

    def offer(self, circuit: Circuit, datasets: Iterable[Dataset]) -> Self:
        """Fill the list of datasets; the network's own is chosen first."""
        self.initial.setdefault("dataset", dataset_for(circuit.network))
        self.fields["dataset"].widget = forms.Select(choices=_name_datasets(datasets))
        return self


class MeasureGraph(ChooseDataset):
    """The class whose logit is read, if the model knows classes, and the dataset."""

    target = forms.CharField(
        label="Class", required=False, widget=_text(list="graph-classes", placeholder="moved most", spellcheck="false")
    )
