"""The fields of the form New sweep. `form.py` checks them together."""

from __future__ import annotations

from django import forms

from experiments.core.params import MAX_COUNT
from experiments.core.sweep_totals import BUDGETS, MAX_TOKENS
from experiments.display.form_fields import LiveForm, NumberText, limit_field
from experiments.models import Sweep, SweepPriority
from experiments.runs.asking.form import SURROUNDINGS, LimitFields
from experiments.sweeps.selection import SelectionKind
from experiments.units.bands import CheckBand
from experiments.units.states import UnitState
from workers.record import tasks
from workers.record.limits import MAX_EXEMPLARS, MAX_REFLECTIONS, QUESTION_CHARS

PRIORITIES = {"low": SweepPriority.LOW, "normal": SweepPriority.NORMAL, "high": SweepPriority.HIGH}
LABEL_CHECKS = {"": None, "yes": True, "no": False}
_NO_NUMBER = {"invalid": "Enter a number, such as 5 or 0.50."}
_NO_LIMIT = {"placeholder": "no limit"}
_STATES = [("", "any"), *((each.value, each.words) for each in (*UnitState, *CheckBand))]


class SweepFields(LiveForm, LimitFields):
    """What a sweep asks, of which units, by whom, and within which limits."""

    task = forms.ChoiceField(choices=tasks.choices(), initial=tasks.DEFAULT_TASK)
    name = forms.CharField(required=False, max_length=120, help_text="made from the rest if empty")
    question = forms.CharField(
        help_text="that of the task if empty; {unit}, {name}, {layer} and {model} stand for those of each unit",
        required=False,
        max_length=QUESTION_CHARS,
        widget=forms.Textarea(
            attrs={
                "rows": 2,
                "autocomplete": "off",
                "placeholder": "What does unit {unit} of {layer} in {model} respond to?",
            }
        ),
    )
    model = forms.CharField(max_length=200, widget=forms.Select, error_messages={"required": "Choose a model."})
    layer = forms.MultipleChoiceField(label="Layers", required=False, widget=forms.CheckboxSelectMultiple)
    choose = forms.ChoiceField(
        label="Units",
        choices=[(each.value, each.words) for each in SelectionKind],
        initial=SelectionKind.LAYERS,
        widget=forms.RadioSelect,
    )
    state = forms.CharField(
        label="State or band of r", required=False, max_length=40, widget=forms.Select(choices=_STATES)
    )
    words = forms.CharField(label="Words of name or label", required=False, max_length=200)
    sample = forms.IntegerField(label="How many", required=False, min_value=1, max_value=10**9, widget=NumberText)
    below = forms.FloatField(
        label="Least r of a good label",
        required=False,
        min_value=-1,
        max_value=1,
        widget=NumberText(attrs={"inputmode": "decimal"}),
    )
    units = forms.CharField(
        label="List of units",
        help_text="a line each: unit, or layer,unit, or model,layer,unit; numbers or names",
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false", "placeholder": "layer4,7"}),
    )
    file = forms.FileField(
        label="Or a CSV file",
        help_text="up to 1 MB; longer ones by manage.py sweep start --units FILE",
        required=False,
        widget=forms.FileInput(attrs={"accept": ".csv, text/csv, text/plain"}),
    )
    agent = forms.MultipleChoiceField(
        label="Agents",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose who writes the replies."},
    )
    toolset = forms.MultipleChoiceField(label="Toolsets", required=False, widget=forms.CheckboxSelectMultiple)
    unpriced = forms.BooleanField(
        label="Allow models without a known price", help_text="the cost budget does not cover them", required=False
    )
    budget_cost = limit_field("US dollars", 10**9)
    budget_tokens = forms.IntegerField(
        label="Tokens", required=False, max_value=MAX_TOKENS, widget=NumberText(attrs={"placeholder": "no limit"})
    )
    budget_seconds = limit_field("Time, s", 10**10)
    priority = forms.ChoiceField(
        required=False, choices=[(key, key.capitalize()) for key in PRIORITIES], initial="normal"
    )
    dataset = forms.CharField(required=False, max_length=500, widget=forms.Select)
    surroundings = forms.ChoiceField(required=False, choices=SURROUNDINGS)
    exemplars = forms.IntegerField(
        help_text="0 for all 15", required=False, min_value=0, max_value=MAX_EXEMPLARS, widget=NumberText
    )
    reflections = forms.IntegerField(
        help_text="if a label fails its check",
        required=False,
        min_value=0,
        max_value=MAX_REFLECTIONS,
        widget=NumberText,
    )
    label_check = forms.ChoiceField(
        label="Check labels", required=False, choices=[(each, each or "as installed") for each in LABEL_CHECKS]
    )
    seed = forms.IntegerField(required=False, min_value=0, max_value=MAX_COUNT, widget=NumberText)
    ablation = forms.BooleanField(
        help_text="programs may ablate the unit in its model and read what becomes of the output", required=False
    )


def _budget(label: str) -> forms.FloatField:
    return forms.FloatField(
        label=label, required=False, widget=NumberText({"inputmode": "decimal", **_NO_LIMIT}), error_messages=_NO_NUMBER
    )


class ChangeSweep(forms.Form):
    """Another priority, other budgets: an empty one is no limit."""

    priority = forms.TypedChoiceField(
        required=False,
        choices=[(key, key.capitalize()) for key in PRIORITIES],
        coerce=PRIORITIES.__getitem__,
        empty_value=None,
    )
    cost_limit = _budget("US dollars")
    token_limit = _budget("Tokens")
    seconds_limit = _budget("Time, s")

    @classmethod
    def of(cls, row: Sweep) -> ChangeSweep:
        key = next((key for key, value in PRIORITIES.items() if value == row.priority), "")
        limits = {name: getattr(row, name) for name in BUDGETS}
        written = {name: "" if limit is None else f"{limit:g}" for name, limit in limits.items()}
        return cls(initial={"priority": key, **written})

    @property
    def budget(self) -> dict[str, float | None]:
        """Return the limits that were sent, by column."""
        # A limit whose field was not sent stays as it is.
        return {name: self.cleaned_data[name] for name in BUDGETS if name in self.data}
