"""The form for training a sparse auto-encoder: its choices, defaults and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

from django import forms
from django.utils.functional import cached_property

from experiments.core import compatibility
from experiments.core.params import MAX_COUNT
from experiments.display.form_fields import NumberText
from experiments.display.number_format import count_noun
from experiments.installation.sparse import SparseWish
from experiments.models import Dataset, Layer, VisionModelRow
from workers.record.sparse import DEFAULT_STEPS, MAX_LATENTS, MAX_NAME, MAX_STEPS, TOPK, default_k, default_latents

KINDS = (
    ("topk", "TopK: the k largest of each position"),
    ("batchtopk", "BatchTopK: k on average, more where needed"),
    ("matryoshka", "Matryoshka: the first latents learn what is general"),
)
MAX_K = 12
"""Maximum number of auto-encoders per form."""
_OUTPUTS = ("logit", "concept")
"""Kinds of layers that are not offered first, because their units already have names."""


class NewAutoencoder(forms.Form):
    """Layer of a model, dataset, and recipe."""

    model = forms.CharField(max_length=200, widget=forms.Select, error_messages={"required": "Choose a model."})
    layer = forms.CharField(max_length=200, widget=forms.Select, error_messages={"required": "Choose a layer."})
    dataset = forms.CharField(max_length=500, widget=forms.Select, error_messages={"required": "Choose a dataset."})
    latents = forms.IntegerField(min_value=1, max_value=MAX_LATENTS, widget=NumberText)
    k = forms.CharField(
        label="Active at a position, k", help_text="several with commas", max_length=100, widget=NumberText
    )
    kind = forms.ChoiceField(choices=KINDS)
    steps = forms.IntegerField(min_value=1, max_value=MAX_STEPS, widget=NumberText)
    seed = forms.IntegerField(min_value=0, max_value=MAX_COUNT, widget=NumberText)
    name = forms.CharField(
        required=False,
        max_length=MAX_NAME,
        widget=forms.TextInput(
            attrs={"spellcheck": "false", "autocomplete": "off", "placeholder": "made of the above"}
        ),
    )

    def clean_k(self) -> list[int]:
        """Parse one k or several, separated by commas."""
        words = [each.strip() for each in self.cleaned_data["k"].split(",") if each.strip()]
        found = [int(each) for each in words if each.isascii() and each.isdigit() and 1 <= int(each) <= MAX_LATENTS]
        if len(found) != len(words) or not 1 <= len(found) <= MAX_K or len(set(found)) != len(found):
            raise forms.ValidationError(
                f"Write a whole number from 1 to {MAX_LATENTS:,}, or up to {MAX_K} different ones, as 4, 8, 16."
            )
        return found

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if len(given.get("k") or []) > 1 and given.get("name"):
            self.add_error("name", "Leave it empty for several k: each auto-encoder has a name of its own.")
        return given

    @classmethod
    def prefill(cls, chosen: Mapping[str, Any]) -> Self:
        """Return an unsent form with defaults for the chosen model or layer."""
        filled: dict[str, Any] = {"kind": TOPK, "steps": DEFAULT_STEPS, "seed": 0, "name": ""}
        filled |= {name: chosen[name] for name in ("model", "layer", "dataset") if chosen.get(name)}
        form = cls(initial=filled)
        model, layer = form.chosen_model, form.chosen_layer
        if model and layer:
            filled |= {"model": model.name, "layer": layer.name}
            filled |= {"latents": default_latents(layer.units), "k": default_k(layer.units)}
        if model and filled.get("dataset") not in [each.key for each in form.datasets]:
            filled["dataset"] = compatibility.dataset_for(model.name)
        return cls(initial=filled)

    def _value(self, name: str) -> str:
        return str(self[name].value() or "")

    @cached_property
    def models(self) -> list[VisionModelRow]:
        """Return the available models that are not auto-encoders themselves."""
        return list(VisionModelRow.objects.filter(available=True, base="", layers__isnull=False).distinct())

    @cached_property
    def chosen_model(self) -> VisionModelRow | None:
        """Return the model that the form names, else toybox, else the first."""
        there = {each.name: each for each in self.models}
        return there.get(self._value("model")) or there.get(compatibility.TOYBOX) or next(iter(there.values()), None)

    @cached_property
    def layers(self) -> list[Layer]:
        """Return the layers of the chosen model."""
        model = self.chosen_model
        return list(model.layers.select_related("model").defer("names")) if model else []

    @cached_property
    def chosen_layer(self) -> Layer | None:
        """Return the layer that the form names, else the last one before the outputs."""
        layers = self.layers
        inner = [each for each in layers if each.kind not in _OUTPUTS] or layers
        return next((each for each in layers if each.name == self._value("layer")), next(reversed(inner), None))

    @cached_property
    def datasets(self) -> list[Dataset]:
        return list(Dataset.objects.filter(available=True).defer("broken"))

    def offer(self) -> Self:
        """Fill the lists with what there is to choose from."""
        offered = {
            "model": [(each.name, each.name) for each in self.models],
            "layer": [(each.name, f"{each.name}, {count_noun(each.units, 'unit')}") for each in self.layers],
            "dataset": [(each.key, each.label or each.key) for each in self.datasets],
        }
        for name, choices in offered.items():
            cast("forms.Select", self.fields[name].widget).choices = choices
        return self

    @property
    def wishes(self) -> list[SparseWish]:
        """Return what a valid form asks for: one auto-encoder for each k."""
        return [SparseWish(**self.cleaned_data | {"k": k}) for k in self.cleaned_data["k"]]
