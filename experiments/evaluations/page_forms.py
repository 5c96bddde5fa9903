"""The forms beside results: resume or repair an evaluation, compare two of them, compare labels of one two by two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django import forms
from django.http import QueryDict

from experiments.display.form_fields import NumberText
from experiments.evaluations import lists
from experiments.models import Evaluation
from experiments.pairwise import of_evaluation
from experiments.pairwise.form import DEFAULT_PAIRS
from experiments.pairwise.of_evaluation import JUDGES, SHUFFLED

MAX_CHOICES = 50
"""Maximum number of evaluations offered for comparison with one."""


def _number(**attrs: str) -> NumberText:
    return NumberText({"inputmode": "decimal", **attrs})


class ResumeEvaluation(forms.Form):
    """Other limits, in place of those that an evaluation has."""

    cost = forms.FloatField(label="$ at most", required=False, widget=_number())
    seconds = forms.FloatField(label="Seconds at most", required=False, widget=_number())

    @classmethod
    def of(cls, row: Evaluation) -> ResumeEvaluation:
        return cls(initial={"cost": _write(row.cost_limit), "seconds": _write(row.seconds_limit)})


def _write(limit: float | None) -> str:
    return "" if limit is None else f"{limit:g}"


class RepairEvaluation(forms.Form):
    """How much the units judged spurious are to count."""

    factor = forms.FloatField(
        label="What they weigh", help_text="0 leaves them out", required=False, initial="0", widget=_number()
    )

    def clean_factor(self) -> float:
        return float(self.cleaned_data["factor"] or 0)


class TwoEvaluations(forms.Form):
    """Two evaluations of one kind; either may be missing."""

    a = forms.ModelChoiceField(Evaluation.objects.none(), label="A, before", required=False)
    b = forms.ModelChoiceField(Evaluation.objects.none(), label="B, after", required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.error_messages["invalid_choice"] = "This evaluation was deleted."
            cast("forms.ModelChoiceField[Evaluation]", field).queryset = lists.with_progress(Evaluation.objects.all())

    def clean_b(self) -> Evaluation | None:
        a, b = self.cleaned_data.get("a"), self.cleaned_data["b"]
        if a and b and (a.kind != b.kind or a.pk == b.pk):
            raise forms.ValidationError(
                "Choose two different evaluations of the same kind: figures of different kinds cannot be compared."
            )
        return cast("Evaluation | None", b)

    def offer(self, rows: Iterable[Evaluation]) -> None:
        """Fill both lists."""
        choices = [(row.pk, f"{row.name[:60]} · {row.row_of_kind.label}") for row in rows]
        for field in self.fields.values():
            cast("forms.Select", field.widget).choices = choices


class CompareLabels(forms.Form):
    """Sources of labels, and how many pairs and judges."""

    source = forms.MultipleChoiceField(
        label="Sources",
        help_text="two or more, as they labelled then",
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    most = forms.IntegerField(label="Pairs of two sources at most", initial=DEFAULT_PAIRS, widget=NumberText)
    judges = forms.IntegerField(label="Judges a pair", min_value=1, initial=JUDGES, widget=NumberText)

    def __init__(self, row: Evaluation, data: QueryDict | None = None) -> None:
        keys = of_evaluation.list_comparable(row)
        super().__init__(data, initial={"source": [key for key in keys if key != SHUFFLED]})
        source = cast("forms.MultipleChoiceField", self.fields["source"])
        source.choices = [(key, of_evaluation.name_source(key)) for key in keys]
