"""Check the fields of an import form, and its files.

Pages, API and command use the same checks. The typed fields apply to all files of one form; the name of a transcript
may give its layer and unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.core import access
from experiments.core.params import parse_number
from experiments.core.request_limits import UPLOAD
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import ImportKind, Role

AT_ONCE = 100
"""Maximum number of files in one form."""
FIELDS: dict[ImportKind, tuple[str, ...]] = {
    ImportKind.BUNDLE: ("owner",),
    ImportKind.HISTORY: ("model", "layer", "unit", "question", "backbone_model", "owner"),
    ImportKind.LABELS: ("model", "source", "layer", "units_from"),
}
NEEDED: dict[ImportKind, tuple[str, ...]] = {
    ImportKind.BUNDLE: (),
    ImportKind.HISTORY: ("model",),
    ImportKind.LABELS: ("model", "source"),
}
MAX_CHARS = {"question": 4_000}
NAMED = re.compile(r"(?:(?P<layer>.+?)[ _-]+)??(?:(?:unit|neuron)[ _-]*)?(?P<unit>[0-9]{1,9})", re.ASCII)
"""Names of transcripts that give a unit: layer4_122, layer4-unit122, 122."""
# Words before the number that are not the name of a layer
NO_LAYER = frozenset({"history", "transcript", "run", "maia"})

Typed = Mapping[str, str]


def problem_with(kind: str, typed: Typed, by: User) -> str:
    """Return why these fields are refused, or "" if they are valid."""
    if kind not in ImportKind.values:
        return "Choose what the file is."
    for name in NEEDED[ImportKind(kind)]:
        if not typed.get(name):
            return f"Enter the {name}."
    if typed.get("units_from", "") not in {"", "0", "1"}:
        return "Units are counted from 0 or from 1."
    if (unit := typed.get("unit", "")) and parse_number(unit) is None:
        return f"“{unit[:40]}” is not the number of a unit."
    long = [name for name, text in typed.items() if len(text) > MAX_CHARS.get(name, 200) or "\x00" in text]
    if long:
        return f"The {long[0]} is too long."
    try:
        owner_of(by, typed.get("owner", ""))
    except ExchangeError as error:
        return str(error)
    return ""


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
