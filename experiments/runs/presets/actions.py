"""Presets: list a person's presets; save, change and delete their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import QuerySet

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import InvalidFields
from experiments.core.params import parse_key
from experiments.models import Preset, Role
from experiments.runs.asking.form import QueryForm
from experiments.runs.own_rows import choose_readable, save_under_name
from workers.record.limits import DEFAULT_LIMITS

FIELDS = (
    *("task", "model", "layer", "dataset", "toolset", "backbone", "backbone_model"),
    *("surroundings", "exemplars", "reflections", "ablation", "seed", "unpriced", *DEFAULT_LIMITS),
)
"""Fields of the New run form that a preset keeps: all but question and unit."""
_TICKS = ("ablation", "unpriced")


def list_presets(user: User | AnonymousUser) -> QuerySet[Preset]:
    """Return the user's own presets, and those that others share."""
    return choose_readable(Preset.objects.all(), user)


def read_preset(user: User | AnonymousUser, number: str) -> dict[str, str]:
    """Return the settings of the preset with this number; empty if there is none for this person."""
    row = list_presets(user).filter(pk=parse_key(number)).first()
    return choose_fields(row.settings) if row else {}


def choose_fields(given: Mapping[str, Any]) -> dict[str, str]:
    """Return what a preset keeps of a form's values."""
    kept = {name: str(given[name]) for name in FIELDS if given.get(name) is not None}
    # A box that is not ticked is not sent; the API may send false
    return {name: value for name, value in kept.items() if name not in _TICKS or value.lower() not in ("", "false")}


@transaction.atomic
def write_preset(actor: Actor, row: Preset, name: str, settings: Mapping[str, Any], *, shared: bool) -> Preset:
    """Write these fields into a preset of the actor, new or not. Raises InvalidFields for settings that no run could
    have, StateConflict for a name that another of their presets has."""
    actor.require(Role.RESEARCHER)
    kept = choose_fields(settings)
    # Unchanged settings are not checked: what they name may have gone since.
    if kept != row.settings and (wrong := _find_wrong(kept)):
        raise InvalidFields("The preset was not saved: some of its settings need another look.", wrong)
    verb = Verb.PRESET_CHANGED if row.pk else Verb.PRESET_SAVED
    row.name, row.settings, row.shared = name, kept, shared
    save_under_name(row, "preset")
    audit.record(actor, verb, row, shared=shared)
    return row


def _find_wrong(settings: Mapping[str, str]) -> dict[str, list[str]]:
    """Return field -> errors, as for a run; fields that a preset leaves open have none."""
    form = QueryForm(settings)
    # A preset lacks question and unit, whose errors mean nothing here.
    return {name: [str(each) for each in found] for name, found in form.errors.items() if name in settings}


@transaction.atomic
def delete_preset(actor: Actor, row: Preset) -> None:
    """Delete a preset; runs started from it stay."""
    actor.require(Role.RESEARCHER)
    audit.record(actor, Verb.PRESET_DELETED, row)
    row.delete()
