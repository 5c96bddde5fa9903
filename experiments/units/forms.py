"""The form of a causal check. `causal.read_question` checks its values."""

from __future__ import annotations

from django import forms

from experiments.display.form_fields import NumberText
from experiments.models import Layer

OTHER = "other"
_CHANGES = (("0", "Ablate"), ("2", "Double"), (OTHER, "Other factor"))
_REFERENCES = (("zero", "zero"), ("mean", "the unit's mean"))


class AskCausalCheck(forms.Form):
    """How much the unit is changed, towards what, and which units of its layer go with it."""

    change = forms.CharField(required=False, initial="0", widget=forms.Select(choices=_CHANGES))
    factor = forms.CharField(
        label="Other factor",
        required=False,
        widget=NumberText({"inputmode": "decimal", "size": "5", "placeholder": "0 to 10"}),
    )
    reference = forms.CharField(
        label="Towards", required=False, initial="zero", widget=forms.Select(choices=_REFERENCES)
    )
    others = forms.CharField(
        required=False,
        widget=forms.TextInput({"placeholder": "3,5-8", "spellcheck": "false", "autocomplete": "off"}),
    )

    def __init__(self, layer: Layer, sent: dict[str, str] | None = None) -> None:
        super().__init__(sent)
        self["others"].label = f"Other {layer.noun}s of this layer to go with it"
