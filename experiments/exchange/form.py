"""Check the fields of an import form, and its files.

Pages, API and command use the same checks. The typed fields apply to all files of one form; the name of a transcript
may give its layer and unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Self

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.core import access
from experiments.core.errors import InvalidFields, InvalidInput
from experiments.core.params import parse_number
from experiments.core.request_limits import UPLOAD
from experiments.display.form_fields import NumberText
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import ImportKind, Role

AT_ONCE = 100
"""Maximum number of files in one form."""
NAMED = re.compile(r"(?:(?P<layer>.+?)[ _-]+)??(?:(?:unit|neuron)[ _-]*)?(?P<unit>[0-9]{1,9})", re.ASCII)
"""Names of transcripts that give a unit: layer4_122, layer4-unit122, 122."""
# Words before the number that are not the name of a layer
NO_LAYER = frozenset({"history", "transcript", "run", "maia"})

Typed = Mapping[str, str]


class _Files(forms.FileInput):
    """One or several files."""

    allow_multiple_selected = True

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({"multiple": True, "required": True, **(attrs or {})})


def _files(label: str, endings: str, accept: str) -> forms.FileField:
    help_text = f"{endings}, one or several"
    return forms.FileField(label=label, help_text=help_text, required=False, widget=_Files({"accept": accept}))


def _name(example: str, **attrs: str) -> forms.TextInput:
    return forms.TextInput({"spellcheck": "false", "placeholder": example, **attrs})


class ImportForm(forms.Form):
    """The fields of one kind of file. Pages draw the field `file`; `problem_of` checks the files."""

    file = forms.FileField(required=False, widget=_Files)

    def __init__(self, kind: str, asked_by: User, data: Typed | None = None) -> None:
        super().__init__(data, auto_id=f"{kind}-%s")
        self.asked_by = asked_by

    @property
    def typed(self) -> dict[str, str]:
        """Return the values of a valid form."""
        return {name: text for name, text in self.cleaned_data.items() if name != "file"}

    def check(self) -> dict[str, str]:
        """Return the values. Raises InvalidFields."""
        if self.errors:
            first = next(iter(self.errors.values()))[0]
            raise InvalidFields(
                str(first), {name: [str(each) for each in found] for name, found in self.errors.items()}
            )
        return self.typed

    def offer(self, models: Sequence[str], owners: Iterable[User]) -> Self:
        """Fill the lists with what there is to choose from."""
        offered = {
            "model": [(name, name) for name in models] or [("", "No layers are known yet")],
            "owner": [("", "Me"), *((user.get_username(), _name_owner(user)) for user in owners)],
        }
        for name, choices in offered.items():
            if name in self.fields and isinstance(widget := self.fields[name].widget, forms.Select):
                widget.choices = choices
        return self


class _OwnedRuns(ImportForm):
    """Files that become runs."""

    owner = forms.CharField(
        label="Owner of the runs", help_text="an admin chooses", required=False, max_length=200, widget=forms.Select
    )

    def clean_owner(self) -> str:
        name = str(self.cleaned_data["owner"])
        try:
            owner_of(self.asked_by, name)
        except ExchangeError as error:
            raise forms.ValidationError(str(error)) from None
        return name


class _Bundle(_OwnedRuns):
    file = _files("Bundles", ".zip or .eval", ".zip, .eval")


class _Transcripts(_OwnedRuns):
    file = _files("Transcripts", ".json", ".json, application/json")
    model = forms.CharField(
        max_length=200,
        widget=_name("torchvision:timm/resnet152.tv_in1k", list="known-models"),
        error_messages={"required": "Enter the model."},
    )
    layer = forms.CharField(required=False, max_length=200, widget=_name("layer4"))
    unit = forms.CharField(required=False, widget=NumberText({"maxlength": "9", "placeholder": "122"}))
    question = forms.CharField(help_text="optional", required=False, max_length=4_000)
    backbone_model = forms.CharField(
        label="Backbone", help_text="optional", required=False, max_length=200, widget=_name("gpt-4-vision-preview")
    )
    field_order = ("file", "model", "layer", "unit", "question", "backbone_model", "owner")

    def clean_unit(self) -> str:
        unit = str(self.cleaned_data["unit"])
        if unit and parse_number(unit) is None:
            raise forms.ValidationError(f"“{unit[:40]}” is not the number of a unit.")
        return unit


class _Labels(ImportForm):
    file = _files(
        "Labels",
        ".csv, .tsv, .json, .jsonl or .zip",
        ".csv, .tsv, .json, .jsonl, .zip, text/csv, application/json",
    )
    model = forms.CharField(max_length=200, widget=forms.Select, error_messages={"required": "Enter the model."})
    source = forms.CharField(max_length=40, widget=_name("milan"), error_messages={"required": "Enter the source."})
    layer = forms.CharField(
        help_text="only where the file names none", required=False, max_length=200, widget=_name("layer4")
    )
    units_from = forms.ChoiceField(
        label="Units count from",
        choices=[("0", "0"), ("1", "1")],
        required=False,
        error_messages={"invalid_choice": "Units are counted from 0 or from 1."},
    )


FORMS: dict[ImportKind, type[ImportForm]] = {
    ImportKind.BUNDLE: _Bundle,
    ImportKind.HISTORY: _Transcripts,
    ImportKind.LABELS: _Labels,
}


def fill_form(kind: str, asked_by: User, data: Typed) -> ImportForm:
    """Return the form of these values. Raises InvalidInput for an unknown kind."""
    if kind not in ImportKind.values:
        raise InvalidInput("Choose what the file is.", "kind")
    return FORMS[ImportKind(kind)](kind, asked_by, data)


def _name_owner(user: User) -> str:
    name, full = user.get_username(), user.get_full_name()
    return f"{full} ({name})" if full else name


def problem_of(kind: str, name: str, size: int, typed: Typed) -> str:
    """Return why this file is refused, or "" if it is valid."""
    if not size:
        return "Choose a file that is not empty."
    if size > UPLOAD:
        return f"{name} has {size >> 20:,} MB, at most {UPLOAD >> 20:,} MB are possible: split it."
    if kind != ImportKind.HISTORY:
        return ""
    layer = _layer_and_unit(name)[0]
    if layer and typed.get("layer") and typed["layer"] != layer and not typed.get("unit"):
        return f"The file's name says layer {layer}, the form {typed['layer']}. Enter the unit, or rename the file."
    about = complete_fields(kind, name, typed)
    missing = next((each for each in ("layer", "unit") if not about.get(each)), "")
    return f"Enter the {missing}, or name the file like layer4_122.json." if missing else ""


def complete_fields(kind: str, name: str, typed: Typed) -> dict[str, str]:
    """Return the fields of one file. Empty layer and unit of a transcript are filled in from its name."""
    if kind != ImportKind.HISTORY:
        return dict(typed)
    layer, unit = _layer_and_unit(name)
    # Where the form names the layer, only the unit comes from the file's name
    place = {"unit": unit} if typed.get("layer") else {"layer": layer, "unit": unit}
    return {**typed, **{field: text for field, text in place.items() if not typed.get(field)}}


def _layer_and_unit(name: str) -> tuple[str, str]:
    """Parse layer and unit from a file name, "" if missing: "layer4_122.json" -> ("layer4", "122")."""
    found = NAMED.fullmatch(PurePath(name).stem)
    if found is None:
        return "", ""
    layer = found["layer"] or ""
    # "history_122" names a unit, but no layer
    return "" if layer.lower() in NO_LAYER else layer, found["unit"]


def owners() -> QuerySet[User]:
    """Return the members who can own imported runs."""
    return User.objects.filter(member__isnull=False, is_active=True).order_by("username")


def owner_of(asked_by: User, name: str) -> User:
    """Return the owner of imported runs: the importing person, or the member whom an admin chose. Raises
    ExchangeError."""
    if not name or name == asked_by.get_username():
        return asked_by
    member = owners().filter(username=name).first()
    if member is None or access.role_of(asked_by) != Role.ADMIN:
        raise ExchangeError(
            f"{name[:60]!r} cannot own these runs: only an admin can choose an owner, who must be a member of the team."
        )
    return member
