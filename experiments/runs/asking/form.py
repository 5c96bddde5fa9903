"""The New run form: a person's question, checked against what workers have found.

Also reads a unit over a dataset, which its own page shows too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.forms.boundfield import BoundField

from experiments.core import catalogue, compatibility, notify, parts, queue, unit_names
from experiments.core.catalogue import join_names
from experiments.core.errors import InvalidInput
from experiments.core.params import MAX_COUNT, MAX_INTEGER
from experiments.core.units_of_runs import find_unit_of
from experiments.display.form_fields import LiveForm
from experiments.models import Backbone, Dataset, Layer, Run, Toolset, Unit, UnitProfile, VisionModelRow
from experiments.runs.asking.circuits import ChosenCircuit, choose_circuit, find_circuit_unit, place_circuit
from experiments.runs.drafts import draft_run
from workers import registry
from workers.errors import UnknownName
from workers.record import tasks
from workers.record.circuits import CIRCUIT
from workers.record.limits import DEFAULT_LIMITS, MAX_EXEMPLARS, MAX_REFLECTIONS, QUESTION_CHARS
from workers.record.systems import SystemSpec

ASKED = ("question", "task", "model", "layer", "unit", "toolset", "backbone", "backbone_model", "seed")
"""Fields that are columns of a run."""
PLACE = ("model", "layer", "unit")
OPTIONS = ("dataset", "surroundings", "exemplars", "reflections", "ablation")
"""Fields that are kept as options of the run's system."""
COMMAND_DEFAULTS = {
    "task": tasks.DEFAULT_TASK,
    "dataset": settings.LAB_DATASET,
    "toolset": compatibility.TOYBOX,
    "backbone": compatibility.SCRIPTED,
    "backbone_model": "",
    "seed": "0",
    "surroundings": "",
    "exemplars": "0",
    "reflections": "0",
}
"""Options of `manage.py investigate` beside the unit, the limits and the question."""
SURROUNDINGS = [
    ("", "As usual"),
    ("dim", "Dim, less colour"),
    ("dark", "Dark, as published"),
    ("weighted", "Dark, region weighted by activation"),
]
"""Look of masked images outside the bright region; `workers.protocols.settings.Surroundings`."""
ASK_AGAIN = 30
"""Seconds after which missing exemplars are requested again: Redis may have lost the request."""
UNIT_CHARS = 2_000
"""Of a unit, or of several as 3, 5, 8-12."""
ABOVE_ZERO = "A limit must be above 0. Leave it empty for no limit."


LOGIT = "logit"
"""Kind of the layers whose units are classes."""
AVAILABLE: dict[str, type[Dataset | Toolset | Backbone]] = {
    "dataset": Dataset,
    "toolset": Toolset,
    "backbone": Backbone,
}
"""Fields whose rows say whether a worker can use them."""


def _check_limit(value: float) -> None:
    if not value > 0:
        raise ValidationError(ABOVE_ZERO)


class LimitFields(forms.Form):
    """Limits of a run; an empty field is no limit."""

    rounds = forms.IntegerField(
        label="Rounds", required=False, initial=DEFAULT_LIMITS["rounds"], max_value=10**6, validators=[_check_limit]
    )
    tokens = forms.IntegerField(
        label="Tokens", required=False, initial=DEFAULT_LIMITS["tokens"], max_value=10**12, validators=[_check_limit]
    )
    cost = forms.FloatField(
        label="Cost, US $", required=False, initial=DEFAULT_LIMITS["cost"], max_value=10**6, validators=[_check_limit]
    )
    seconds = forms.IntegerField(
        label="Time limit (s)",
        required=False,
        initial=int(DEFAULT_LIMITS["seconds"]),
        max_value=10**8,
        validators=[_check_limit],
    )


class QueryForm(LiveForm, LimitFields):
    """Everything that defines a run. Errors list the choices; nothing typed is lost."""

    field_order = ("question", "task", "model", "layer", "unit", *AVAILABLE, "backbone_model")
    system_kind = ""
    """Kind of the chosen system, after validation."""
    price_unknown = False
    """True if the chosen model has no known price, after validation."""
    question = forms.CharField(
        help_text="The agent is given this word for word.",
        max_length=QUESTION_CHARS,
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "autofocus": True}),
        error_messages={
            "required": "Write a question: the agent is given it word for word.",
            "max_length": "This question has %(show_value)d characters; at most %(limit_value)d are taken. Shorten it.",
        },
    )
    task = forms.ChoiceField(choices=tasks.choices(), widget=forms.RadioSelect, initial=tasks.DEFAULT_TASK)
    model = forms.CharField(max_length=200, widget=forms.Select)
    layer = forms.CharField(max_length=200, widget=forms.Select)
    unit = forms.CharField(
        label="Units",
        max_length=UNIT_CHARS,
        widget=forms.TextInput(
            attrs={
                "autocomplete": "off",
                "spellcheck": "false",
                "data-key": "Alt u",
                "data-key-own": True,
                "data-key-says": "Choose units",
            }
        ),
        error_messages={"required": "Choose a unit."},
    )
    dataset = forms.CharField(
        help_text="Exemplars, and the region that counts as bright, come from it.",
        max_length=500,
        required=False,
        widget=forms.Select,
    )
    toolset = forms.ChoiceField(choices=lambda: list(parts.list_toolsets().items()))
    backbone = forms.ChoiceField(choices=lambda: list(parts.list_backbones().items()))
    backbone_model = forms.CharField(label="Model of the backbone", max_length=200, required=False)
    seed = forms.IntegerField(required=False, initial=0, min_value=0, max_value=MAX_COUNT)
    surroundings = forms.ChoiceField(label="Around the region", required=False, choices=SURROUNDINGS)
    exemplars = forms.IntegerField(
        help_text="0 for all 15; AIM takes 5", required=False, initial=0, min_value=0, max_value=MAX_EXEMPLARS
    )
    reflections = forms.IntegerField(
        help_text="0 for none", required=False, initial=0, min_value=0, max_value=MAX_REFLECTIONS
    )
    ablation = forms.BooleanField(
        help_text="The agent may ablate the unit in its model and read what becomes of the output.", required=False
    )
    unpriced = forms.BooleanField(
        label="Run without a known price",
        help_text="The cost is then not counted, and its limit left out.",
        required=False,
    )
    circuit = forms.IntegerField(required=False, min_value=1, max_value=MAX_INTEGER)
    parent = forms.IntegerField(required=False, min_value=1, max_value=MAX_INTEGER)

    def __init__(self, data: Mapping[str, Any] | None = None, *args: Any, **kwargs: Any) -> None:
        # Before `super().__init__`, which takes the data that `_place_circuit` returns.
        self._circuit_problem = ""
        self._chosen: ChosenCircuit | None = None
        super().__init__(self._place_circuit(data), *args, **kwargs)

    @property
    def limits(self) -> list[BoundField]:
        """Return the limits of a run, and its seed."""
        return [self[name] for name in (*DEFAULT_LIMITS, "seed")]

    @property
    def image_settings(self) -> list[BoundField]:
        return [self[name] for name in ("surroundings", "exemplars", "reflections")]

    @property
    def has_bad_settings(self) -> bool:
        """True if a field that the page folds has an error."""
        return not self.errors.keys().isdisjoint({*DEFAULT_LIMITS, "seed", *OPTIONS})

    def _place_circuit(self, data: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the data, for a circuit alone with its model, layer and unit."""
        if not data or not data.get("circuit"):
            return data
        try:
            return {**{name: data[name] for name in data}, **place_circuit(data)}
        except InvalidInput as error:
            # `clean` reports it: there are no errors to add it to before the form is checked.
            self._circuit_problem = str(error)
            return data

    def clean_seed(self) -> int:
        # An empty field is the default seed.
        return self.cleaned_data["seed"] or 0

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if self._circuit_problem:
            # These are missing because of the circuit, and one message suffices.
            for name in PLACE:
                self.errors.pop(name, None)
            self.add_error("circuit", self._circuit_problem)
            return data
        # 1. Each part by itself.
        self._look_at_availability()
        self._find_unit(data)
        self._match_task(data)
        # 2. Parts together.
        backbone = data.get("backbone", "")
        toolset, model = data.get("toolset", compatibility.TOYBOX), data.get("model", "")
        if problem := compatibility.explain_incompatibility(backbone, toolset, model):
            self.add_error("backbone", problem)
            # Without a usable backbone there is no price to ask for.
            backbone = ""
        data["backbone_model"] = compatibility.model_of(backbone, data.get("backbone_model", ""))
        # Without a known price a limit of the cost cannot be enforced: a person confirms that the run may do without.
        self.price_unknown = compatibility.price_unknown(backbone, data["backbone_model"])
        if self.price_unknown and data.get("unpriced"):
            data["cost"] = None
        elif self.price_unknown and data.get("cost") is not None:
            self.add_error("unpriced", compatibility.without_price(data["backbone_model"]))
        return data

    def _look_at_availability(self) -> None:
        """Refuse missing parts with the remedy; accept what no worker has checked yet."""
        for name in AVAILABLE.keys() & self.cleaned_data.keys():
            key = self.cleaned_data[name]
            row: Any = AVAILABLE[name]._default_manager.filter(key=key).first()
            if row and not row.available:
                self.add_error(name, f"{row.label} cannot be used yet. {row.remedy}")
            elif row is None and name == "dataset" and (problem := catalogue.unknown_dataset(key)):
                self.add_error(name, problem)

    def _find_unit(self, data: dict[str, Any]) -> None:
        """Check model, layer and unit together; the unit becomes a number, the layer's kind that of the system."""
        if not {"model", "layer"} <= data.keys():
            return
        try:
            layer = find_layer(data["model"], data["layer"])
            self.system_kind = registry.system_of(layer.kind)
            if data.get("ablation") and (problem := explain_no_ablation(layer)):
                self.add_error("ablation", problem)
            if "unit" in data:
                data["unit"] = find_unit(layer, data["unit"])
                self._chosen = choose_circuit(layer, data["unit"], data.get("circuit"))
        except InvalidInput as error:
            self.add_error(error.field, str(error))

    def _match_task(self, data: dict[str, Any]) -> None:
        """Refuse a task that does not suit the system: functions have their own."""
        mismatch = (
            tasks.explain_mismatch(data.get("task", tasks.DEFAULT_TASK), self.system_kind) if self.system_kind else ""
        )
        if mismatch:
            self.add_error("task", mismatch)

    def run(self, owner: User) -> Run:
        """Return the run that a valid form asks for, unsaved; `runs.actions` saves it."""
        data = self.cleaned_data
        # Defaults are left out, so that equal queries have equal options.
        options = {name: data[name] for name in OPTIONS if data[name]}
        options |= self._chosen.options if self._chosen else {}
        return draft_run(
            SystemSpec(self.system_kind, data["model"], data["layer"], data["unit"], options),
            owner=owner,
            parent=Run.objects.filter(pk=data["parent"]).first() if data.get("parent") else None,
            limits={name: data[name] for name in DEFAULT_LIMITS},
            **{name: data[name] for name in ASKED if name not in PLACE},
        )


def find_layer(model: str, layer: str) -> Layer:
    """Return a layer of a model that can be used. Raises InvalidInput."""
    found = VisionModelRow.objects.filter(name=model).first()
    if found is None:
        raise InvalidInput(catalogue.describe_missing_model(model), "model")
    if not found.available:
        raise InvalidInput(f"{model} cannot be used yet. {found.remedy}", "model")
    place = found.layers.filter(name=layer).first()
    # Circuits are studied as units of a layer that no list shows.
    place = place or Layer.with_circuits.filter(model=found, name=layer, kind=CIRCUIT).first()
    if place is None:
        names = join_names(found.layers.values_list("name", flat=True))
        raise InvalidInput(f"{model} has no layer “{layer}”. Choose one of: {names}.", "layer")
    return place


def explain_no_ablation(layer: Layer) -> str:
    """Say why programs of a run cannot ablate units of a layer; "" if no reason is known."""
    problem = compatibility.explain_unchangeable(layer)
    return f"{problem} Or leave out ablation." if problem else ""


def find_unit(layer: Layer, written: str) -> int:
    """Return the number of the unit for a number or a name. Raises InvalidInput."""
    if layer.kind == CIRCUIT:
        return find_circuit_unit(layer, written).number
    try:
        return unit_names.unit_number(written, f"{layer.name} of {layer.model.name}", layer.units, layer.names)
    except UnknownName as error:
        raise InvalidInput(str(error), "unit") from None


def read_profile(layer: Layer, number: int, dataset: Dataset, again: bool) -> dict[str, Any]:
    """Return the unit over the dataset, with exemplars if there are some; otherwise asks a worker for them."""
    found, _ = Unit.objects.get_or_create(layer=layer, number=number)
    profile, _ = UnitProfile.objects.get_or_create(unit=found, dataset=dataset)
    if again and profile.problem:
        profile.problem = ""
        profile.save(update_fields=["problem"])
        cache.delete(f"asked-for-exemplars:{profile.pk}")
    # Pages poll: only one of them asks, again after a while.
    if not (profile.written or profile.problem) and cache.add(f"asked-for-exemplars:{profile.pk}", True, ASK_AGAIN):
        queue.ask_for("write_exemplars", profile.pk)
    exemplars = list(profile.exemplars.all()) if profile.written else []
    return {
        "profile": profile,
        "exemplars": exemplars,
        "exemplar_mean": sum(each.activation for each in exemplars) / len(exemplars) if exemplars else None,
        "progress": None if profile.written else notify.read_report(f"profile:{profile.pk}"),
    }


def class_layer(model: str) -> Layer | None:
    """Return the layer whose units are a model's classes; None if there is none."""
    rows = Layer.objects.select_related("model").filter(model__name=model, model__available=True, kind=LOGIT)
    # Without names there are no classes to choose from.
    return next((layer for layer in rows if layer.names), None)


def get_first_choice(model: str = "", task: str = tasks.DEFAULT_TASK) -> dict[str, Any]:
    """Return what an untouched form selects; empty while there is no model."""
    layers = Layer.objects.select_related("model").filter(model__available=True).order_by("model__name", "-position")
    named = layers.filter(model__name=model or compatibility.TOYBOX)
    if tasks.find_task(task).of_functions:
        named = (named if compatibility.has_functions(model) else layers).filter(kind=tasks.FUNCTION).reverse()
    # The layers come deepest first; functions and synthetic neurons begin with the first one.
    elif compatibility.tells_truth(model):
        named = named.reverse()
    # The deepest convolutional layer, else the deepest; of the named model, else of any.
    layer = next(
        (found for some in (named, layers) if (found := some.filter(kind="conv").first() or some.first())), None
    )
    if layer is None:
        return {}
    if tasks.find_task(task).of_classes:
        layer = class_layer(layer.model.name) or layer
    return {"model": layer.model.name, "layer": layer.name, "unit": 0} | compatibility.find_matching_plugins(
        layer.model.name
    )


def copy_values(run: Run) -> dict[str, Any]:
    """Return the form's values for the same query again."""
    limits = {name: run.limits.get(name) for name in DEFAULT_LIMITS}
    options: dict[str, Any] = {name: run.options.get(name, "") for name in OPTIONS}
    options["ablation"] = "on" if options["ablation"] else ""  # as the form sends it
    values = {name: getattr(run, name) for name in ASKED} | limits | options
    if run.system_kind != CIRCUIT:
        return values
    find_unit_of(run)  # an imported one may be the first of its members here
    return values | {"circuit": run.options.get("circuit", "")}
