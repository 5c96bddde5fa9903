"""List all that a program can reach of the worker: a table of functions and a table of attributes.

Used by the sandbox; see `protocols.Sandbox.run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from workers import registry
from workers.errors import ToolError
from workers.lab.function_calls import FunctionSystem, FunctionTools
from workers.lab.system import System
from workers.lab.tools import Tools
from workers.protocols import Json
from workers.record.circuits import CIRCUIT

ProgramStyle = Literal["function", "script"]
"""Style of a program: a function of (system, tools), or a free-form script."""

HIDDEN = "hidden"
"""Replaces a name that would give the answer away."""


NAMES: Mapping[str, tuple[str, ...]] = {
    "system": ("neuron", "call_neuron", "ablate"),
    "tools": (
        *("dataset_exemplars", "text2image", "game_engine", "text2model", "edit_images", "edit_image"),
        *("describe_images", "describe", "summarize_images", "summarize", "test_label"),
        *("log_experiment", "save_experiment_log", "display", "experiment_log", "results_list"),
    ),
}
"""What programs may use of `System` and `Tools`. Nothing else is served, or listed in the reference."""
CIRCUIT_NAMES = ("circuit",)
"""What is served of `System` in addition if it is a circuit."""
FUNCTION_NAMES: Mapping[str, tuple[str, ...]] = {
    "system": ("call",),
    "tools": ("log_experiment", "save_experiment_log", "experiment_log"),
}
"""The same for `FunctionSystem` and `FunctionTools`."""


def list_function_calls(system: FunctionSystem, tools: FunctionTools) -> dict[str, Callable[..., Any]]:
    """List the functions that a program may call if it studies a function."""
    owners: dict[str, object] = {"system": system, "tools": tools}
    return {f"{owner}.{name}": _serve(owners[owner], name) for owner, names in FUNCTION_NAMES.items() for name in names}


def list_function_facts(system: FunctionSystem) -> Mapping[str, Json]:
    """List the attributes of `system` if it is a function."""
    return {"system.family": system.subject.spec.layer, "system.domain": system.subject.domain}


def list_calls(system: System, tools: Tools, style: ProgramStyle) -> dict[str, Callable[..., Any]]:
    """List the functions by the names that programs of every published style use."""
    owners: dict[str, object] = {"system": system, "tools": tools}
    calls = {f"{owner}.{name}": _serve(owners[owner], name) for owner, names in NAMES.items() for name in names}
    if system.subject.spec.kind == CIRCUIT:
        calls |= {f"system.{name}": _serve(system, name) for name in CIRCUIT_NAMES}
    # Refused with a sentence: without an entry, a call would break the sandbox's protocol.
    calls |= {f"tools.{name}": partial(_refuse, name) for name in tools.lacks}
    if style == "script" and "dataset_exemplars" not in tools.lacks:
        # Published scripts take pairs of an activation and an image.
        calls["tools.dataset_exemplars"] = lambda system=None: list(zip(*tools.dataset_exemplars(system), strict=True))
    return calls


def _refuse(name: str, *arguments: Any, **options: Any) -> Any:
    del arguments, options
    raise ToolError(f"The toolset of this run lacks tools.{name}. Use what the reference describes.")


def _serve(owner: object, name: str) -> Callable[..., Any]:
    """Serve a method as it is, and an attribute as a function that looks it up each time."""
    # Attributes change while a program runs, such as the log.
    is_attribute = isinstance(getattr(type(owner), name), property)
    return (lambda: getattr(owner, name)) if is_attribute else getattr(owner, name)


def list_facts(system: System) -> Mapping[str, Json]:
    """List the attributes of `system`."""
    spec = system.subject.spec
    # Names of the model and the layer would reveal what a synthetic neuron responds to.
    blind = registry.blind_name(spec.kind, spec.model, spec.layer, spec.unit)
    # The number in the blind name replaces the unit's own, which would tell it from a table.
    number = int(blind.split()[-1]) if blind else system.neuron_num
    return {
        "system.model_name": HIDDEN if blind else system.model_name,
        "system.layer": HIDDEN if blind else system.layer,
        "system.neuron_num": number,
        "system.unit": number,
    }
