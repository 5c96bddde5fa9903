"""The form New evaluation as its page shows it: the fields of the chosen kind, and what there is to choose from."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.db.models import QuerySet
from django.utils.html import format_html

from experiments.core import compatibility, parts
from experiments.evaluations.autoencoders import list_autoencoders
from experiments.evaluations.form import NewEvaluation, list_judges
from experiments.models import Backbone, Dataset, Layer, SparseAutoencoderRow, Toolset, VisionModelRow
from workers.record.evaluation_kinds import IMAGES, EvaluationKind, KindRow

_WHAT = ("model", "layer", "batch", "images", "units", "latents", "repeats", "seed", "dataset", "toolset")
_WHO = ("backbone", "reflections", "judge")
_ALWAYS = ("units", "seed")
"""Fields of each kind."""


def draw_form(form: NewEvaluation, kind: KindRow) -> dict[str, Any]:
    """Describe the fields for a kind and return those that it asks for, in groups."""
    # Check the form first: what the page offers is no part of the check
    form.is_valid()
    _describe(form, kind)
    backbones = _list_backbones()
    choices = {
        "dataset": _offer_suiting(Dataset.objects.all()),
        "toolset": _offer_suiting(Toolset.objects.all()),
        "backbone": [("", "choose one" if kind.runs else "none, or the exact judge"), *_name_backbones(backbones)],
        "judge": [("", "nearness in meaning" if kind.families else "none"), *_name_judges(kind)],
    }
    for name, offered in choices.items():
        cast("forms.Select", form.fields[name].widget).choices = offered
    autoencoders = cast("forms.MultipleChoiceField", form.fields["autoencoders"])
    autoencoders.choices = [(row.model.name, _describe_autoencoder(row)) for row in list_autoencoders()]
    # Of the form as typed, valid or not: the list of layers follows it.
    model = str(form["model"].value() or "")
    # No tick to offer if every price is known.
    unpriced = ["unpriced"] if any(unknown for *_, unknown in backbones) else []
    return {
        "what": [form[name] for name in _WHAT if name in kind.asks or name in _ALWAYS],
        "who": [form[name] for name in _WHO if name in kind.asks],
        "ticks": [form[name] for name in ("hints", *unpriced) if name in kind.asks or name in unpriced],
        "models": VisionModelRow.objects.values_list("name", flat=True),
        "layers": Layer.objects.filter(model__name=model).values_list("name", flat=True) or kind.families,
        "images": IMAGES,
    }


def _describe(form: NewEvaluation, kind: KindRow) -> None:
    # Fields of a form that was checked are bound already: a label set on `form.fields` would be ignored
    form["units"].label = f"How many {kind.noun}"
    form["source"].help_text = "of labels for the same units, beside the agent" if kind.runs else "one or more"
    form["model"].help_text = _explain_empty_model(kind)
    form["judge"].help_text = "chooses by descriptions of words" if kind.families else "prefers labels two by two"
    if kind.families:
        form["layer"].label, form["units"].help_text = "Families", "of each family"
    elif "autoencoders" in kind.needs:
        form["units"].help_text = "and as many latents of each"
    if "autoencoders" in kind.asks:
        form["layer"].help_text = "one; the last before the classes if empty"


def _explain_empty_model(kind: KindRow) -> str:
    if "autoencoders" in kind.asks:
        return "toybox if empty, or that of the auto-encoders"
    if not kind.runs:
        return "all if empty"
    if kind.families:
        return "functions of ours if empty"
    return "one with planted biases if empty" if kind.key == EvaluationKind.BIAS else ""


def _describe_autoencoder(row: SparseAutoencoderRow) -> str:
    place = f"{row.card['layer']} of {row.card['model_key']}, k {row.card['k']}"
    return format_html('{} <span class="muted">{}</span>', row.model.name, place)


def _offer_suiting(rows: QuerySet[Any]) -> list[tuple[str, str]]:
    return [("", "what suits the model"), *((row.key, row.label or row.key) for row in rows)]


def _list_backbones() -> list[tuple[str, str, bool]]:
    """Return (value, words, True if its price is unknown) for each backbone that works by itself and its models."""
    found: list[tuple[str, str, bool]] = []
    for row in Backbone.objects.exclude(key=compatibility.PERSON):
        label = row.label or parts.label_backbone(row.key)
        names = row.model_names or [""]
        found += [(f"{row.key}:{name}" if name else row.key, name or label, name in row.unpriced) for name in names]
    return found


def _name_backbones(found: list[tuple[str, str, bool]]) -> list[tuple[str, str]]:
    return [(value, _note_price(words, unknown)) for value, words, unknown in found]


def _name_judges(kind: KindRow) -> list[tuple[str, str]]:
    return [(each.value, _note_price(each.label, each.unpriced)) for each in list_judges(kind)]


def _note_price(words: str, unknown: bool) -> str:
    return f"{words} (price unknown)" if unknown else words
