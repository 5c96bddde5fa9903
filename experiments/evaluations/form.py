"""Form of a new evaluation, which the address fills in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django import forms
from django.http import QueryDict

from experiments.core import compatibility
from experiments.core.errors import InvalidInput
from experiments.core.params import MAX_COUNT
from experiments.display.form_fields import LiveForm, NumberText, limit_field, offer_counted
from experiments.evaluations.autoencoders import compare_options, find_compared
from experiments.models import Dataset, Evaluation, Layer, Toolset, VisionModelRow
from experiments.pairwise.lists import JudgeBackbone, judge_backbones
from experiments.pairwise.sources import LabelSource
from experiments.sweeps.fields import SweepFields
from workers.record.evaluation_kinds import BATCHES, IMAGES, KINDS, PAPER, KindRow, explain_latents
from workers.record.limits import explain_unpriced
from workers.record.tasks import FUNCTION

MAX_UNITS, MAX_REPEATS = 5_000, 20
MAX_COST, MAX_SECONDS = 10_000.0, 30 * 86_400.0
PLACE = 480
"""Characters of a folder's path."""
_DEFAULTS = {"images": "toybox", "latents": "0", "repeats": "1", "seed": "0", "reflections": "0"}
_TICK = "Tick “Allow models without a known price” (--unpriced)"


class NewEvaluation(LiveForm):
    """The kind first: it decides which other fields count."""

    kind = forms.ChoiceField(choices=[(kind.key, kind.label) for kind in KINDS.values()])
    name = forms.CharField(required=False, max_length=120, help_text="made from the rest if empty")
    source = forms.MultipleChoiceField(label="Sources", required=False, widget=forms.CheckboxSelectMultiple)
    autoencoders = forms.MultipleChoiceField(
        label="Auto-encoders",
        help_text="one or more, all of the same layer",
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    model = forms.CharField(
        required=False, max_length=200, widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"})
    )
    layer = forms.CharField(
        label="Layers",
        help_text="with commas; all if empty",
        required=False,
        max_length=400,
        widget=forms.TextInput(attrs={"list": "layers", "autocomplete": "off"}),
    )
    batch = forms.ChoiceField(required=False, choices=list(BATCHES.items()))
    images = forms.CharField(
        help_text="toybox, or the key of a Spawrious folder",
        required=False,
        max_length=PLACE,
        widget=forms.TextInput(attrs={"list": "images", "autocomplete": "off"}),
    )
    units = forms.IntegerField(label="How many", required=False, min_value=1, max_value=MAX_UNITS, widget=NumberText)
    latents = forms.IntegerField(
        label="Latents in the place of units",
        help_text="of an auto-encoder of each classifier; 0 for none",
        required=False,
        min_value=0,
        widget=NumberText,
    )
    repeats = forms.IntegerField(
        label="Repeated over seeds", required=False, min_value=1, max_value=MAX_REPEATS, widget=NumberText
    )
    seed = forms.IntegerField(required=False, min_value=0, max_value=MAX_COUNT, widget=NumberText)
    dataset = forms.CharField(required=False, max_length=500, widget=forms.Select)
    toolset = forms.CharField(label="Tools", required=False, max_length=100, widget=forms.Select)
    backbone = forms.CharField(required=False, max_length=300, widget=forms.Select)
    reflections = SweepFields.base_fields["reflections"]
    judge = forms.CharField(required=False, max_length=300, widget=forms.Select)
    hints = forms.BooleanField(
        label="With hints too",
        help_text="each function is asked about once more, with some inputs and outputs to begin with",
        required=False,
    )
    unpriced = forms.BooleanField(
        label="Allow models without a known price", help_text="the cost budget does not cover them", required=False
    )
    cost = limit_field("Cost at most, US dollars", MAX_COST, least=0)
    seconds = limit_field("Time at most, seconds", MAX_SECONDS, least=0)

    def __init__(self, data: QueryDict, listed: Sequence[LabelSource], *, untouched: bool = False) -> None:
        """Fill in the form. One that is untouched is not checked."""
        self.chosen_kind = KINDS.get(str(data.get("kind", "")))
        typed = data.copy()
        if self.chosen_kind:
            # Defaults depend on the kind, so the fields cannot declare them.
            for name, value in (_DEFAULTS | {"units": str(self.chosen_kind.units)}).items():
                typed.setdefault(name, value)
        super().__init__(None if untouched else typed, initial=typed.dict())
        sources = cast("forms.MultipleChoiceField", self.fields["source"])
        sources.choices = offer_counted((each.key, each.words, each.labels) for each in listed)
        # All are choices here: `_check_autoencoders` names the unknown ones
        asked = [str(each) for each in data.getlist("autoencoders")]
        cast("forms.MultipleChoiceField", self.fields["autoencoders"]).choices = [(each, each) for each in asked]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        kind = KINDS.get(given.get("kind", ""))
        if kind is None:
            return given
        self._check_backbone(kind, given)
        self._check_judge(kind, given)
        for name, words in kind.needs.items():
            if not given.get(name):
                self.add_error(name, words)
        self._check_model(kind, given)
        self._check_autoencoders(kind, given)
        if "latents" in kind.asks and (why := explain_latents(given.get("latents") or 0)):
            self.add_error("latents", why)
        for name, rows in (("dataset", Dataset.objects), ("toolset", Toolset.objects)):
            if name in kind.asks and given.get(name) and not rows.filter(key=given[name]).exists():
                self.add_error(name, f"There is no {name} “{given[name][:60]}”. Choose one of the list.")
        return given

    def _check_backbone(self, kind: KindRow, given: dict[str, Any]) -> None:
        backbone, _, model = given.get("backbone", "").partition(":")
        given["backbone_model"] = compatibility.model_of(backbone, model) if backbone else ""
        if kind.runs and not backbone:
            self.add_error("backbone", "Choose who writes the replies.")
        elif backbone and not compatibility.is_known(backbone):
            self.add_error("backbone", f"There is no backbone “{backbone[:60]}”. Choose one of the list.")
        elif backbone == compatibility.PERSON:
            self.add_error(
                "backbone", "A person writes rounds on the pages: compare their labels by their source instead."
            )
        elif kind.families and (
            why := compatibility.explain_incompatibility(backbone, "", given.get("model") or compatibility.FUNCTIONS)
        ):
            self.add_error("backbone", why)
        elif compatibility.price_unknown(backbone, given["backbone_model"]) and not given.get("unpriced"):
            self.add_error("backbone", explain_unpriced(given["backbone_model"], "a budget", _TICK))
        # Without the model, which has a column of its own.
        given["backbone"] = backbone

    def _check_judge(self, kind: KindRow, given: dict[str, Any]) -> None:
        judge = given.get("judge", "") if "judge" in kind.asks else ""
        given["judge"] = judge
        offered = {each.value: each for each in list_judges(kind)}
        if judge and judge not in offered:
            self.add_error("judge", f"There is no backbone “{judge[:60]}” that could judge. Choose one of the list.")
        elif judge and offered[judge].unpriced and not given.get("unpriced"):
            self.add_error("judge", explain_unpriced(offered[judge].label, "a budget", _TICK))

    def _check_model(self, kind: KindRow, given: dict[str, Any]) -> None:
        layers = [each.strip() for each in given.get("layer", "").split(",") if each.strip()]
        given["layers"] = layers if "layer" in kind.asks else []
        name = given.get("model", "")
        if "model" not in kind.asks:
            return
        # Without a model, layers of functions are families.
        if not name:
            if kind.families and (unknown := set(given["layers"]) - set(kind.families)):
                self.add_error("layer", f"There is no family “{min(unknown)[:60]}”: {', '.join(kind.families)}.")
            return
        row = VisionModelRow.objects.filter(name=name).first()
        if row is None:
            self.add_error("model", f"There is no model “{name[:60]}”. Choose one of the list.")
            return
        known = dict(Layer.objects.filter(model=row).values_list("name", "kind"))
        if kind.families and FUNCTION not in known.values():
            self.add_error("model", f"{name} has no functions. Choose “{compatibility.FUNCTIONS}”, or leave it empty.")
        if unknown := set(given["layers"]) - known.keys():
            self.add_error("layer", f"{name} has no layer “{min(unknown)[:60]}”.")

    def _check_autoencoders(self, kind: KindRow, given: dict[str, Any]) -> None:
        names = given.get("autoencoders") or []
        if "autoencoders" not in kind.asks or not names:
            return
        try:
            find_compared(names)
        except InvalidInput as error:
            self.add_error("autoencoders", str(error))

    def draft(self) -> Evaluation:
        """Return the unsaved evaluation described by a valid form."""
        given, kind = self.cleaned_data, KINDS[self.cleaned_data["kind"]]
        # 1. What is evaluated.
        options: dict[str, Any] = {"units": given["units"] or kind.units, "repeats": given["repeats"] or 1}
        taken = {"model": "model", "dataset": "dataset", "toolset": "toolset", "batch": "batch"}
        options |= {name: given[field] for name, field in taken.items() if field in kind.asks and given.get(field)}
        if "images" in kind.asks and given["images"] not in ("", *IMAGES):
            options["dataset"] = given["images"]
        if "batch" in kind.asks:
            options.setdefault("batch", "fresh")
            # The paper's neurons are one fixed model
            options |= {"model": PAPER} if options["batch"] == "paper" else {}
        options |= {"layers": given["layers"]} if given["layers"] else {}
        if given["source"] and "source" in kind.asks:
            options["sources"] = _join_sources(kind, given["source"])
        # 2. Who judges, and what is compared. Options that the kind does not ask for are dropped.
        options |= {"judge": given["judge"]} if given["judge"] else {}
        if "autoencoders" in kind.asks and given["autoencoders"]:
            options |= compare_options(given["autoencoders"])
        options |= {"hints": True} if given["hints"] and "hints" in kind.asks else {}
        options |= {"reflections": given["reflections"]} if given["reflections"] and "reflections" in kind.asks else {}
        options |= {"latents": given["latents"]} if given["latents"] and "latents" in kind.asks else {}
        # 3. The row, with a name of its own if none was typed.
        name = given["name"] or _name(kind, options, given["backbone_model"] or given["backbone"])
        return Evaluation(
            kind=kind.key,
            name=name[:120],
            backbone=given["backbone"],
            backbone_model=given["backbone_model"],
            seed=given["seed"] or 0,
            options=options,
            cost_limit=given["cost"] or None,
            seconds_limit=given["seconds"] or None,
            unpriced=given["unpriced"],
        )


def list_judges(kind: KindRow) -> list[JudgeBackbone]:
    """Return the backbones that may judge labels in pairs. If the truth is known in words, also the scripted
    scientist."""
    found = judge_backbones()
    if kind.truth_in_words and compatibility.is_known(compatibility.SCRIPTED):
        words = "Scripted scientist, by the words of the truth"
        found.append(JudgeBackbone(compatibility.SCRIPTED, words, "", unpriced=False))
    return found


def _join_sources(kind: KindRow, chosen: Sequence[str]) -> list[str]:
    """Return the sources, first those that the evaluation creates itself."""
    return list(dict.fromkeys([*kind.makes, *chosen]))


def _name(kind: KindRow, options: dict[str, Any], backbone: str) -> str:
    about = options.get("model") or ", ".join(options.get("sources", [])) or options.get("dataset")
    if compared := options.get("autoencoders"):
        against = f"{len(compared)} auto-encoder{'s' * (len(compared) > 1)}"
        named = f"{kind.count_noun(options['units'])} of {about} {options['layers'][0]} against {against}"
    elif kind.families:
        families = options.get("layers") or kind.families
        named = f"{kind.count_noun(options['units'] * len(families))} of {', '.join(families)}"
        named += f" of {about}" if about else ""
    elif latents := options.get("latents"):
        named = f"{options['units']:,} of {latents:,} latents of {about or 'toybox'}"
    elif about or "batch" not in options:
        named = f"{kind.count_noun(options['units'])} of {about or 'toybox'}"
    elif options["batch"] == "paper":
        named = f"{kind.count_noun(options['units'])} of the paper"
    else:
        named = kind.count_noun(options["units"], "fresh synthetic ")
    return named + (f" by {backbone}" if backbone and kind.runs else "")
