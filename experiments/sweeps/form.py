"""The New sweep form and its checks. Pages, the API and the command fill in the same form.

Each run is checked like any query: by the form New run, for the first unit and every agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.html import format_html

from experiments.core import compatibility, parts
from experiments.core.errors import InvalidInput
from experiments.core.system_names import SystemNameMasker
from experiments.models import Backbone, Layer, Sweep
from experiments.models.stored import Variant
from experiments.runs.asking.form import OPTIONS, QueryForm, explain_no_ablation, find_layer
from experiments.sweeps.fields import LABEL_CHECKS, PRIORITIES, SweepFields
from experiments.sweeps.questions import fill_question
from experiments.sweeps.selection import GOOD, Chosen, SelectionKind, UnitChoice, choose_units, keep_choice
from workers.record.limits import DEFAULT_LIMITS, explain_unpriced

MAX_RUNS = 100_000
"""Runs of one sweep: units times agents."""
BUDGETS = {"budget_cost": "cost_limit", "budget_tokens": "token_limit", "budget_seconds": "seconds_limit"}
"""Field -> column."""
_SEVERAL = ("layer", "agent", "toolset")
"""Fields that take several values."""


class NewSweep(SweepFields):
    """The limits apply to each run, the budget to the whole sweep."""

    def __init__(self, data: QueryDict, names: SystemNameMasker, *, untouched: bool = False) -> None:
        """Fill in the form. One that is untouched is not checked."""
        initial = {name: data.getlist(name) if name in _SEVERAL else data[name] for name in data}
        super().__init__(None if untouched else data, initial=initial)
        self._names = names
        self._chosen: Chosen = {}
        self._choice: UnitChoice | None = None
        self._first: QueryForm | None = None
        self._variants: list[Variant] = []
        layers = Layer.objects.filter(model__name=data.get("model", "")).values_list("name", "units")
        self._offer("layer", [(name, _describe_layer(name, units)) for name, units in layers])
        self._offer("agent", list(list_agents().items()))
        self._offer("toolset", list(parts.list_toolsets().items()))

    def _offer(self, name: str, choices: Sequence[tuple[str, str]]) -> None:
        field = self.fields[name]
        # For the type checker: `fields` holds fields of any class.
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = choices
        there = ", ".join(key for key, _ in choices[:40]) or "none yet"
        field.error_messages["invalid_choice"] = f"There is none called “%(value)s”. Choose of: {there}."

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        for name in BUDGETS:
            if given.get(name) is not None and not given[name] > 0:
                self.add_error(name, f"A budget of {given[name]:g} lets nothing run: write more, or leave it empty.")
        if not self.errors:
            self._look_at_units(given)
        if not self.errors:
            self._look_at_variants(given)
        if not self.errors and (runs := self.count_runs()) > MAX_RUNS:
            words = f"These are {runs:,} runs, and a sweep has at most {MAX_RUNS:,}: choose fewer units or agents."
            self.add_error("choose", words)
        return given

    def _look_at_units(self, given: dict[str, Any]) -> None:
        """Find the units that are meant."""
        try:
            model = find_layers(given["model"])
            named = set(given["layer"])
            layers = [each for each in model if each.name in named] if named else []
            # A list names its layers by itself.
            if not layers and given["choose"] == SelectionKind.LIST:
                layers = model
            self._choice = UnitChoice(
                next(each for each in SelectionKind if each == given["choose"]),
                layers,
                given["state"],
                given["words"],
                given["sample"] or 0,
                given["seed"] or 0,
                GOOD if given["below"] is None else given["below"],
                given["units"],
            )
            self._chosen = choose_units(self._choice, self._names)
            if given["ablation"]:
                self._check_ablation()
        except InvalidInput as error:
            self.add_error(error.field if error.field in self.fields else None, str(error))

    @property
    def has_bad_settings(self) -> bool:
        """True if a field that the page folds has an error."""
        return not self.errors.keys().isdisjoint({*DEFAULT_LIMITS, "dataset", "ablation"})

    def _check_ablation(self) -> None:
        for layer in self._chosen:
            if problem := explain_no_ablation(layer):
                self.add_error("ablation", f"{layer.name}: {problem}")
                return

    def _look_at_variants(self, given: dict[str, Any]) -> None:
        """Check every agent with every toolset, as the form New run checks a run of the first unit."""
        fitting = compatibility.find_matching_plugins(given["model"])
        given["dataset"] = given["dataset"] or fitting["dataset"]
        for agent in given["agent"]:
            for toolset in given["toolset"] or [fitting["toolset"]]:
                backbone, _, model = agent.partition(":")
                # The first unit stands for all: only the question differs between them.
                form = QueryForm(self._query_of(given, backbone, model, toolset))
                if not form.is_valid():
                    self._take_over(form)
                    return
                # To enforce a budget, all prices must be known, whatever each run may cost
                if form.price_unknown and not given["unpriced"]:
                    model = form.cleaned_data["backbone_model"]
                    self.add_error(
                        "agent",
                        explain_unpriced(model, "a budget", "Tick “Allow models without a known price” (--unpriced)"),
                    )
                    return
                found = form.cleaned_data["backbone_model"]
                self._variants.append({"backbone": backbone, "backbone_model": found, "toolset": toolset})
                self._first = self._first or form

    def _query_of(self, given: dict[str, Any], backbone: str, model: str, toolset: str) -> dict[str, Any]:
        # No layer is without units here, so there is a first unit.
        layer, units = next(iter(self._chosen.items()))
        same = (
            "task",
            "model",
            "dataset",
            "surroundings",
            "exemplars",
            "reflections",
            "ablation",
            "unpriced",
            *DEFAULT_LIMITS,
        )
        asked = fill_question(given["question"], given["task"], layer, units[0])
        own = {"question": asked, "layer": layer.name, "unit": units[0], "seed": given["seed"] or 0}
        return (
            {name: given[name] for name in same}
            | own
            | {
                "backbone": backbone,
                "backbone_model": model,
                "toolset": toolset,
            }
        )

    def _take_over(self, form: QueryForm) -> None:
        """Report errors of the runs as errors of the sweep."""
        places = {"backbone": "agent", "backbone_model": "agent", "unit": "choose"}
        for name, messages in form.errors.items():
            place = places.get(name, name)
            for message in messages:
                self.add_error(place if place in self.fields else None, message)

    def count_units(self) -> int:
        return sum(map(len, self._chosen.values()))

    def count_runs(self) -> int:
        return self.count_units() * len(self._variants)

    def draft(self) -> Sweep:
        """Return the unsaved sweep of a form without problems."""
        given, first = self.cleaned_data, self._first
        assert first is not None, "the form has problems"
        assert self._choice is not None, "the form has problems"
        options: dict[str, Any] = {name: given[name] for name in OPTIONS if given[name]}
        checked = LABEL_CHECKS[given["label_check"]]
        return Sweep(
            name=given["name"] or self._suggest_name()[:120],
            question=given["question"],
            task=given["task"],
            selection=keep_choice(self._choice, self._chosen),
            variants=self._variants,
            options=options | ({} if checked is None else {"label_check": checked}),
            limits={name: first.cleaned_data[name] for name in DEFAULT_LIMITS},
            seed=given["seed"] or 0,
            priority=PRIORITIES[given["priority"] or "normal"],
            planned=self.count_runs(),
            unpriced=given["unpriced"],
            **{column: given[name] for name, column in BUDGETS.items()},
        )

    def _suggest_name(self) -> str:
        layers = [layer.name for layer in self._chosen]
        where = layers[0] if len(layers) == 1 else f"{len(layers)} layers"
        units = self.count_units()
        return f"{units:,} unit{'s' * (units != 1)} of {where} in {self.cleaned_data['model']}"


def _describe_layer(name: str, units: int) -> str:
    return format_html('<span class="mono">{}</span> <span class="muted">{}</span>', name, f"{units:,}")


def find_layers(model: str) -> list[Layer]:
    """Return all layers of a model that can be used. Raises InvalidInput."""
    names = list(Layer.objects.filter(model__name=model).values_list("name", flat=True)[:1])
    # For its errors: the model may be missing, or not usable
    first = find_layer(model, names[0] if names else "")
    return list(first.model.layers.select_related("model"))


def list_agents() -> dict[str, str]:
    """Return each backbone that works by itself, with each model of its provider if it has some -> its name."""
    found: dict[str, str] = {}
    # A person writes rounds one by one: a sweep of thousands would wait for them.
    for row in Backbone.objects.exclude(key=compatibility.PERSON):
        label = row.label or parts.label_backbone(row.key)
        for name in row.model_names or [""]:
            found[f"{row.key}:{name}" if name else row.key] = name or label
    return found
