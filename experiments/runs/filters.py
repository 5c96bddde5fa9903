"""The filters of a list of runs. Page, API and exports read them from here."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Literal

from django.contrib.auth.models import User
from django.db.models import Q

from experiments.api.fields import Day, RowNumber, UnitNumber, Words
from experiments.core.errors import InvalidInput
from experiments.core.params import ROW_DIGITS, parse_number
from experiments.core.search_index.words import parse_words as read_words
from experiments.core.system_names import SystemNameMasker
from experiments.display import verdicts
from experiments.display.narrowing import (
    WORDS_CHARS,
    Filter,
    equal,
    equal_choice,
    equal_number,
    index_filters,
    require_known,
    since_day,
    until_day,
)
from experiments.models import Run
from experiments.runs import filter_choices as choices
from experiments.search.runs import runs_matching
from workers.record import tasks
from workers.record.statuses import ACTIVE, Status

STATUSES = [("active", "Live"), *Status.choices()]
CHECK = re.compile(r"(>=|<)?\s*(-?[01](?:\.[0-9]{1,6})?)", re.ASCII)


def _by_status(text: str) -> Q:
    status = require_known("status", text, dict(STATUSES))
    return Q(status__in=ACTIVE) if status == "active" else Q(status=status)


def by_verdict(text: str, viewer: User | None) -> Q:
    return verdicts.filter_by_verdict(require_known("verdict", text, dict(verdicts.CHOICES)), viewer)


def _by_numbers(text: str) -> Q:
    """Select runs by their numbers, as `12,15`."""
    numbers = [parse_number(number, ROW_DIGITS) for number in text.split(",")]
    # One wrong number refuses the list: a shorter one would be another choice.
    if None in numbers:
        raise InvalidInput(f"“{text[:40]}” is no list of runs: write their numbers as 12,15.")
    return Q(pk__in=numbers)


def _by_backbone(text: str) -> Q:
    """Select runs by backbone, or by a backbone with its model as `openai:gpt-4o`."""
    backbone, _, model = text.partition(":")
    return Q(backbone=backbone, backbone_model=model) if model else Q(backbone=backbone)


def by_words(text: str, names: SystemNameMasker | None = None) -> Q:
    if len(text) > WORDS_CHARS:
        raise InvalidInput(f"These words have {len(text)} characters; at most {WORDS_CHARS} are looked for.")
    if problem := read_words(text).problem:
        raise InvalidInput(problem)
    return Q(pk__in=runs_matching(text, names))


def _by_label(text: str) -> Q:
    if len(text) > WORDS_CHARS:
        raise InvalidInput(f"This label has {len(text)} characters; at most {WORDS_CHARS} are looked for.")
    return Q(pk__in=Run.objects.filter(label_set__text__icontains=text).values("pk"))


def _by_check(text: str) -> Q:
    """Select runs by r of their check: `0.5` or `>=0.5` for at least that, `<0.5` for less, `none` for no check."""
    if text == "none":
        return Q(label_check=None)
    found = CHECK.fullmatch(text)
    if found is None:
        raise InvalidInput(f"“{text[:40]}” is no bound of r: write >=0.5, <0.2, or none for runs without a check.")
    return Q(**{f"label_check__pearson__{'lt' if found[1] == '<' else 'gte'}": float(found[2])})


FILTERS = index_filters(
    Filter("q", "Words", by_words, Words, "words of question, description and labels", in_fields=False),
    Filter(
        "status",
        "Status",
        _by_status,
        Literal["active"] | Status,
        "`active`: queued or running",
        choices=STATUSES,
        in_fields=False,
    ),
    Filter("model", "Model", equal("model"), Words, choices=choices.list_models),
    Filter("layer", "Layer", equal("layer"), Words, choices=choices.list_layers, needs="model"),
    Filter("unit", "Unit", equal_number("unit", "unit", digits=9), UnitNumber, input="numeric"),
    Filter("task", "Task", equal_choice("task", "task", tasks.choices()), Words, choices=tasks.choices()),
    Filter(
        "backbone",
        "Agent",
        _by_backbone,
        Words,
        "a backbone, or one with its model, as openai:gpt-4o",
        choices=choices.list_backbones,
    ),
    Filter("label", "Label", _by_label, Words, "words of its labels"),
    Filter(
        "check",
        "Label check, r",
        _by_check,
        Words,
        "bound of r of the check, as >=0.5 or <0.2; or none",
        hint=">=0.5",
    ),
    Filter(
        "verdict",
        "Verdict",
        # Replaced by `runs_from` where the viewer is known.
        partial(by_verdict, viewer=None),
        Words,
        "accept, revise, reject, split, final, reviewed or none",
        choices=verdicts.CHOICES,
    ),
    Filter("tag", "Tag", equal("tags__name"), Words, choices=choices.list_tags),
    Filter(
        "sweep",
        "Sweep",
        equal_number("sweep", "sweep"),
        RowNumber,
        "number of the sweep they are of",
        hint="its number",
        input="numeric",
    ),
    Filter("run", "Runs", _by_numbers, Words, "numbers of runs, as 12,15", hint="12,15", in_fields=False),
    Filter("owner", "Created by", equal("owner__username"), Words, choices=choices.list_owners, blank="Anybody"),
    Filter("since", "Created since", since_day("created"), Day, "asked on this day or later", input="date"),
    Filter("until", "Until", until_day("created"), Day, "asked on this day or earlier", input="date"),
)
"""By name in the address, in the order of the page. The condition of the verdict is what everybody may see."""


def place_filters(model: str, layer: str, unit: str) -> list[Filter]:
    """Return the filters by model, layer and unit for rows that have them in these columns."""
    conditions = {"model": equal(model), "layer": equal(layer), "unit": equal_number(unit, "unit", digits=9)}
    return [replace(FILTERS[name], condition=condition) for name, condition in conditions.items()]
