"""The forms that add models and datasets and start an index. The actions check their values, for pages and API
alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from django import forms
from django.urls import reverse_lazy
from django.utils.html import format_html

from experiments.installation.actions import LABEL_CHARS, NAME_CHARS, PATH_CHARS
from experiments.models import Dataset, VisionModelRow


def _text(length: int, example: str, **attrs: Any) -> forms.TextInput:
    return forms.TextInput({"maxlength": length, "autocomplete": "off", "placeholder": example, **attrs})


class AddModel(forms.Form):
    """A model, by hub id or folder."""

    name = forms.CharField(
        label="Hub id or folder",
        required=False,
        widget=_text(NAME_CHARS, "hf:microsoft/resnet-50", required=True, spellcheck="false"),
    )


class AddDataset(forms.Form):
    """A folder on the worker's machine."""

    place = forms.CharField(
        label="Folder on the worker's machine",
        required=False,
        widget=_text(PATH_CHARS, "/data/photographs", required=True, spellcheck="false"),
    )
    label = forms.CharField(label="Name", required=False, widget=_text(LABEL_CHARS, "the folder's own"))
    follow_links = forms.BooleanField(
        label="Follow links that lead out of the folder, to any image that the worker may read", required=False
    )


class AddIndex(forms.Form):
    """Layers of a model, and the dataset that they are measured over."""

    dataset = forms.CharField(required=False, widget=forms.Select)
    model = forms.CharField(
        required=False,
        widget=forms.Select(
            {
                "hx-get": reverse_lazy("settings-datasets"),
                "hx-trigger": "change",
                "hx-target": "#index-layers",
                "hx-swap": "outerHTML",
            }
        ),
    )
    layers = forms.Field(required=False, widget=forms.CheckboxSelectMultiple)
    insist = forms.BooleanField(
        label="Take published exemplars even if they are of other weights; they are then marked", required=False
    )

    @classmethod
    def prefill(cls, chosen: Mapping[str, Any]) -> Self:
        """Return an unsent form for the chosen dataset and model. All layers except those of concepts are ticked."""
        return cls(initial={name: chosen[name] for name in ("dataset", "model") if name in chosen})

    def offer(self) -> Self:
        """Fill the lists with what there is to choose from."""
        models = list(VisionModelRow.objects.filter(available=True))
        named = str(self["model"].value() or "")
        model = next((each for each in models if each.name == named), next(iter(models), None))
        layers = list(model.layers.defer("names")) if model else []
        datasets = Dataset.objects.filter(available=True).defer("broken")
        self._offer("dataset", [(each.key, each.label or each.key) for each in datasets])
        self._offer("model", [(each.name, each.name) for each in models])
        words = '<span class="mono">{}</span> <span class="muted">{}</span>'
        self._offer("layers", [(each.name, format_html(words, each.name, each.units)) for each in layers])
        self.fields["layers"].label = f"Layers of {model.name}" if model else "Layers"
        self.fields["layers"].help_text = "" if layers else "No layers are known."
        self.initial.setdefault("layers", [each.name for each in layers if each.kind != "concept"])
        return self

    @property
    def has_choice(self) -> bool:
        return all(self[name].field.widget.choices for name in ("dataset", "model"))

    def _offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        widget = self.fields[name].widget
        assert isinstance(widget, forms.Select | forms.CheckboxSelectMultiple)
        widget.choices = choices
