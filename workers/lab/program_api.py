"""All that a program can reach of the worker: one table of functions, one of plain attributes. Nothing else is served.

Consumed by the sandbox; see `protocols.Sandbox.run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from workers import registry
from workers.lab.system import System
from workers.lab.tools import Tools
from workers.protocols import Json

ProgramStyle = Literal["function", "script"]
"""How a program is written: a function of (system, tools), or a free-form script."""

HIDDEN = "hidden"
"""In place of a name that would tell the answer."""


def list_calls(system: System, tools: Tools, style: ProgramStyle) -> dict[str, Callable[..., Any]]:
    """The functions by the names that programs of every published style use."""

    def exemplar_pairs(system: Any = None) -> list[tuple[float, str]]:
        return list(zip(*tools.dataset_exemplars(system), strict=True))

    return {
        "system.neuron": system.neuron,
        "system.call_neuron": system.call_neuron,
        "tools.dataset_exemplars": tools.dataset_exemplars if style == "function" else exemplar_pairs,
        "tools.text2image": tools.text2image,
        "tools.text2model": tools.text2model,
        "tools.game_engine": tools.game_engine,
        "tools.edit_images": tools.edit_images,
        "tools.edit_image": tools.edit_image,
        "tools.describe_images": tools.describe_images,
        "tools.describe": tools.describe,
        "tools.summarize_images": tools.summarize_images,
        "tools.summarize": tools.summarize,
        "tools.log_experiment": tools.log_experiment,
        "tools.save_experiment_log": tools.save_experiment_log,
        "tools.display": tools.display,
        "tools.experiment_log": lambda: tools.experiment_log,
        "tools.results_list": lambda: tools.results_list,
    }


def list_facts(system: System) -> Mapping[str, Json]:
    """The attributes of `system`; of a synthetic neuron they do not tell what it responds to."""
    spec = system.subject.spec
    blind = registry.blind_name(spec.kind, spec.model, spec.layer, spec.unit)
    number = int(blind.split()[-1]) if blind else system.neuron_num
    return {
        "system.model_name": HIDDEN if blind else system.model_name,
        "system.layer": HIDDEN if blind else system.layer,
        "system.neuron_num": number,
        "system.unit": number,
    }
