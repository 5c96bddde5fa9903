"""The form New run as its page shows it: what each field offers, and what is selected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from django import forms
from django.utils.html import format_html

from experiments.models import Dataset, VisionModelRow
from experiments.runs.asking.form import QueryForm


class _DatasetSelect(forms.Select):
    """Datasets; those of `unavailable` cannot be chosen."""

    unavailable: frozenset[str] = frozenset()

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        if value in self.unavailable:
            option["attrs"]["disabled"] = True
        return option


def draw_form(form: QueryForm, shown: Mapping[str, Any]) -> None:
    """Fill in what the fields offer and select what the page shows, from `choices.read_choices`."""
    if not shown["models"]:
        return
    # Check the form first: what the page selects is no part of the check.
    form.is_valid()
    _offer(form, "model", ((each.name, _name_model(each)) for each in shown["models"]))
    _offer(form, "layer", ((each.name, f"{each.name} · {each.units} {each.plural}") for each in shown["layers"]))
    _offer_datasets(form, shown)
    # The page replaces the words inside when another model is chosen
    form["model"].help_text = format_html('<span id="model-note">{}</span>', shown["model"].note)
    unit = form.fields["unit"].widget.attrs
    unit |= {"list": "unit-names"} if shown["unit_names"] else {}
    unit |= {"aria-invalid": "true"} if shown.get("problem") else {}
    if not shown["takes_images"]:
        form.fields["ablation"].widget.attrs["disabled"] = True
    _select(form, shown)


def _offer(form: QueryForm, name: str, offered: Iterable[tuple[str, str]]) -> None:
    cast("forms.Select", form.fields[name].widget).choices = list(offered)


def _name_model(model: VisionModelRow) -> str:
    return (model.added and model.label) or model.name


def _offer_datasets(form: QueryForm, shown: Mapping[str, Any]) -> None:
    """Offer the datasets; hide the field if there is no choice."""
    rows: list[Dataset] = shown["datasets"]
    if len(rows) < 2 or (shown["dataset"] and not shown["takes_images"]):
        form.fields["dataset"].widget = forms.HiddenInput()
        return
    widget = _DatasetSelect(choices=[(row.key, _name_dataset(row)) for row in rows])
    widget.unavailable = frozenset(row.key for row in rows if not row.available)
    form.fields["dataset"].widget = widget


def _name_dataset(row: Dataset) -> str:
    images = f" · {row.images} images" if row.images else ""
    return f"{row.label}{images}{'' if row.available else ' · cannot be used'}"


def _select(form: QueryForm, shown: Mapping[str, Any]) -> None:
    """Select what the preview beside the form shows, even if something else was sent."""
    rows = {"model": shown["model"].name, "unit": shown["written"]}
    rows |= {"layer": shown["layer"].name} if shown["layer"] else {}
    rows |= {"dataset": shown["dataset"].key} if shown["dataset"] else {}
    form.initial = {**(form.initial or {}), **rows}
    # A bound form draws its data, not its initial values.
    if form.is_bound:
        form.data = {**{name: form.data[name] for name in form.data}, **rows}
