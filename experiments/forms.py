"""The New query form: what a person asks, checked against the catalogue of models, layers and units.

Also the question suggested for each task, and the command line that asks the same. Called by `views.query`.
"""

from __future__ import annotations

import shlex
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from experiments.models import Layer, Model, Run
from experiments.models.run import LIMITS, QUESTION_CHARS
from workers import registry

TASK_LINES = {
    "describe": "What makes the unit fire? Ends in a description and one or more labels.",
    "bias": "In which contexts does the model treat a class differently? Ends in a description of the bias.",
    "spurious": "Does the unit rely on the object itself or on what is usually around it? Ends in a verdict.",
    "free": "Your own question, put to the agent as you write it.",
}
SUGGESTIONS = {
    "describe": "What does unit {unit} of {layer} in {model} respond to?",
    "bias": "Is there a bias in what unit {unit} of {layer} in {model} responds to?",
    "spurious": "Does unit {unit} of {layer} in {model} rely on a spurious feature?",
    "free": "Which change to an image lowers unit {unit} of {layer} in {model} the most?",
}
ABOVE_ZERO = "A limit must be above 0. Leave it empty for no limit."


class QueryForm(forms.Form):
    """Everything that goes into a run. Errors say what there is to choose from; nothing typed is lost."""

    question = forms.CharField(
        max_length=QUESTION_CHARS,
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off"}),
        error_messages={
            "required": "Write a question: the agent is given it word for word.",
            "max_length": "This question has %(show_value)d characters; at most %(limit_value)d are taken. Shorten it.",
        },
    )
    task = forms.ChoiceField(choices=list(registry.TASKS.items()), widget=forms.RadioSelect, initial="describe")
    model = forms.CharField(max_length=200)
    layer = forms.CharField(max_length=200)
    unit = forms.IntegerField(error_messages={"required": "Choose a unit.", "invalid": "A unit is a whole number."})
    backbone = forms.ChoiceField(
        choices=lambda: registry.choices(registry.BACKBONES), widget=forms.RadioSelect, initial="scripted"
    )
    rounds = forms.IntegerField(required=False, initial=LIMITS["rounds"], max_value=10**6)
    tokens = forms.IntegerField(required=False, initial=LIMITS["tokens"], max_value=10**12)
    cost = forms.FloatField(required=False, initial=LIMITS["cost"], max_value=10**6)
    seconds = forms.IntegerField(required=False, initial=int(LIMITS["seconds"]), max_value=10**8)
    seed = forms.IntegerField(required=False, initial=0, min_value=0, max_value=2**31 - 1)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.widget.attrs.setdefault("aria-describedby", f"{name}-note")
        if self.is_bound:
            for name in self.errors:
                if name in self.fields:
                    self.fields[name].widget.attrs["aria-invalid"] = "true"

    def clean_rounds(self) -> int | None:
        return self._limit("rounds")

    def clean_tokens(self) -> int | None:
        return self._limit("tokens")

    def clean_cost(self) -> float | None:
        return self._limit("cost")

    def clean_seconds(self) -> int | None:
        return self._limit("seconds")

    def clean_seed(self) -> int:
        return self.cleaned_data["seed"] or 0

    def _limit(self, name: str) -> Any:
        value = self.cleaned_data[name]
        if value is not None and not value > 0:
            raise ValidationError(ABOVE_ZERO)
        return value

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if {"model", "layer"} <= data.keys():
            field, problem = system_problem(data["model"], data["layer"], data.get("unit"))
            if problem and field in data:
                self.add_error(field, problem)
        return data

    def save(self, owner: User) -> Run:
        """A queued run. The caller enqueues it."""
        data = self.cleaned_data
        known = ("question", "task", "model", "layer", "unit", "backbone", "seed")
        return Run.objects.create(
            owner=owner,
            system_kind="unit",
            limits={name: data[name] for name in LIMITS},
            **{name: data[name] for name in known},
        )


def system_problem(model: str, layer: str, unit: int | None) -> tuple[str, str]:
    """The field that names something that does not exist, and the sentence about it; both empty if all is well."""
    found = Model.objects.filter(name=model).first()
    if found is None:
        return (
            "model",
            f"There is no model “{model}”. Choose one of: {listed(Model.objects.values_list('name', flat=True))}.",
        )
    place = found.layers.filter(name=layer).first()
    if place is None:
        return (
            "layer",
            f"{model} has no layer “{layer}”. Choose one of: {listed(found.layers.values_list('name', flat=True))}.",
        )
    if unit is not None and not 0 <= unit < place.units:
        return "unit", f"There is no unit {unit}: {layer} of {model} has units 0 to {place.units - 1}."
    return "", ""


def listed(names: Any) -> str:
    return ", ".join(names) or "none yet, the worker is still loading them"


def suggestions(model: str, layer: str, unit: int) -> dict[str, str]:
    """A sensible question for each task."""
    return {task: text.format(model=model, layer=layer, unit=unit) for task, text in SUGGESTIONS.items()}


def first_choice() -> dict[str, Any]:
    """What an untouched form shows: the deepest convolutional layer of the first model; empty while there is none."""
    layers = Layer.objects.select_related("model").order_by("model__name", "-position")
    layer = layers.filter(kind="conv").first() or layers.first()
    if layer is None:
        return {}
    return {"model": layer.model.name, "layer": layer.name, "unit": 0}


def like(run: Run) -> dict[str, Any]:
    """The form's values for asking the same again."""
    names = ("question", "task", "model", "layer", "unit", "backbone", "seed")
    return {name: getattr(run, name) for name in names} | {name: run.limits.get(name) for name in LIMITS}


def command_line(values: dict[str, Any]) -> str:
    """The command that asks the same on the terminal; values that are the default are left out."""
    words = ["python", "manage.py", "investigate"]
    for name in ("model", "layer", "unit"):
        words += [f"--{name}", str(values.get(name) or "0")]
    optional = {"task": "describe", "backbone": "scripted", "seed": "0", "rounds": str(LIMITS["rounds"])}
    for name, default in optional.items():
        value = str(values.get(name) or default)
        if value != default:
            words += ["--max-rounds" if name == "rounds" else f"--{name}", value]
    question = " ".join(str(values.get("question") or "").split())
    if question:
        words += ["--question", question]
    return shlex.join(words)
