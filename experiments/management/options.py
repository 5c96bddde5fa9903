"""Options that several commands share: the system under study, and what it is studied with."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError

from experiments.core import compatibility, parts
from experiments.core.errors import InvalidInput
from experiments.core.params import parse_number
from experiments.models import Dataset
from experiments.runs.asking.circuits import choose_circuit, find_circuit_unit, place_circuit
from experiments.runs.asking.form import find_layer
from workers.record.circuits import ACTIVATION_LAYER
from workers.record.limits import MAX_EXEMPLARS
from workers.record.systems import SystemSpec

MAX_SEED = 2**31 - 1
"""As on the pages and in the API."""


class OfferedKeys:
    """Keys that an option accepts, looked up when it is read: rows and plug-ins of the settings add some."""

    def __init__(self, find: Callable[[], dict[str, str]]) -> None:
        self._find = find

    def __iter__(self) -> Iterator[str]:
        try:
            # argparse iterates over the choices for its messages only; membership is asked separately.
            return iter(self._find())
        except DatabaseError:  # --help works before there is a database
            return iter(())

    def __contains__(self, key: object) -> bool:
        if key not in self._find():
            from workers.jobs.laboratory import laboratory

            laboratory()  # adds what plug-ins register
        return key in self._find()


def add_system(parser: CommandParser) -> None:
    parser.add_argument("--model", default="toybox", help="default: toybox; manage.py models lists what there is")
    parser.add_argument("--layer", help="for example layer4; manage.py models MODEL lists them")
    parser.add_argument("--unit", help="number of the unit, from 0; or its name, for a class or a concept")
    circuit = "number of a circuit, in the place of model, layer and unit"
    parser.add_argument("--circuit", type=int, metavar="N", help=circuit)
    where = "where exemplars come from: a key, name or path; default: toybox, for models of toys alone"
    parser.add_argument("--dataset", default="", metavar="NAME", help=where)
    parser.add_argument(
        "--toolset", choices=OfferedKeys(parts.list_toolsets), help="default: toybox, for models of toys alone"
    )
    look = "look of masked images: dim around the bright region, dark as published, or weighted by activation as well"
    parser.add_argument("--surroundings", choices=("dim", "dark", "weighted"), default="", help=look)
    shown = f"exemplars to work with; default: all, {MAX_EXEMPLARS}; AIM takes 5"
    parser.add_argument("--exemplars", type=int, choices=range(MAX_EXEMPLARS + 1), metavar="N", default=0, help=shown)
    parser.add_argument("--seed", type=seed, default=0, help=f"default: 0; at most {MAX_SEED}")


def system_of(options: dict[str, Any]) -> Any:
    """Return the `SystemSpec` that the options name. Raises RequestError if there is none, CommandError."""
    from workers.jobs.plugin_keys import system_named

    if options.get("circuit") is not None or options["layer"] == ACTIVATION_LAYER:
        return _circuit_of(options)
    if not options["layer"] or options["unit"] is None:
        raise CommandError("Say which unit: --layer layer4 --unit 7 (--help lists the rest).")
    spec = system_named(options["model"], options["layer"], options["unit"], options["dataset"])
    options["toolset"] = toolset_of(spec.model, options)
    asked = {name: options[name] for name in ("surroundings", "exemplars") if options[name]}
    return replace(spec, options={**spec.options, **asked})


def _circuit_of(options: dict[str, Any]) -> SystemSpec:
    """Return the circuit that the options name by its number, or by that of its members. Raises CommandError."""
    from workers.jobs.plugin_keys import dataset_named

    key = options.get("circuit")
    try:
        place = place_circuit({"circuit": key}) or {name: options[name] for name in ("model", "layer", "unit")}
        layer = find_layer(place["model"], place["layer"])
        unit = find_circuit_unit(layer, str(place["unit"]))
    except InvalidInput as error:
        raise CommandError(str(error)) from error
    chosen = choose_circuit(layer, unit.number, key)
    spec = unit.spec(dataset_named(options["dataset"]) if options["dataset"] else "")
    options["toolset"] = toolset_of(spec.model, options)
    asked = {name: options[name] for name in ("surroundings", "exemplars") if options[name]}
    return replace(spec, options={**spec.options, **asked, **(chosen.options if chosen else {})})


def toolset_of(model: str, options: dict[str, Any]) -> str:
    """Return the named toolset, or the one for a model of toys; functions use none, so any is accepted. Raises
    CommandError if there is no default."""
    named: str | None = options["toolset"]
    if compatibility.has_functions(model):
        return named or compatibility.TOYBOX
    if compatibility.is_toybox(model):
        return named or compatibility.TOYBOX
    toolsets = ", ".join(key for key in parts.list_toolsets() if not compatibility.is_ablation(key))
    lacking = [] if named else [f"--toolset, one of {toolsets}"]
    if not options["dataset"] and settings.LAB_DATASET == compatibility.TOYBOX:
        there = ", ".join(Dataset.objects.values_list("key", flat=True)) or "manage.py datasets add FOLDER makes one"
        lacking.append(f"--dataset ({there})")
    if named is None or lacking:
        raise CommandError(
            f"{model} does not belong to toybox, so nothing of toybox is taken for it unasked. "
            f"Name {' and '.join(lacking)}."
        )
    return named


def limit(kind: type[int] | type[float], text: str) -> int | float | None:
    """Parse a limit: a number above 0, or "none"."""
    return None if text == "none" else positive(kind, text, ', or "none" for no limit')


def positive(kind: type[int] | type[float], text: str, else_: str = "") -> int | float:
    """Parse a finite number above 0."""
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0. Give one{else_}.")
    return value


def seed(text: str) -> int:
    """Parse a seed."""
    number = parse_number(text, digits=19)
    if number is None or number > MAX_SEED:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {MAX_SEED}.")
    return number
