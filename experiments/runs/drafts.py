"""Build runs before they are saved: one function for pages, API, sweeps, evaluations, forks, the terminal and the first
start.

Missing fields get values that suit the model, so that no run of a network of photographs begins with toys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.core import compatibility
from experiments.models import Layer, Run
from workers.record import tasks
from workers.record.circuits import CIRCUIT
from workers.record.systems import SystemSpec

SAME = ("system_kind", "model", "layer", "unit", "options", "question", "task", "toolset", "backbone")
"""Columns that a run made like another copies, unless they are given."""


def draft_run(
    system: SystemSpec,
    *,
    task: str = tasks.DEFAULT_TASK,
    question: str = "",
    toolset: str = "",
    backbone: str = compatibility.SCRIPTED,
    options: Mapping[str, Any] | None = None,
    **columns: Any,
) -> Run:
    """Return an unsaved run on a system; `actions` saves it.

    Without a question it is given the usual one of the task, without a dataset or toolset those that suit the model
    and the backbone. `options` come on top of the system's; `columns` are other columns of `Run`.
    """
    # Later ones win.
    known = {**system.options, **(options or {})}
    if not known.get("dataset") and system.kind != tasks.FUNCTION:
        known["dataset"] = compatibility.dataset_for(system.model)
    return Run(
        question=question or suggest_question(system, task),
        task=task,
        system_kind=system.kind,
        model=system.model,
        layer=system.layer,
        unit=system.unit,
        options=known,
        toolset=toolset or compatibility.toolset_for(system.model, backbone, str(known.get("dataset") or "")),
        backbone=backbone,
        **columns,
    )


def suggest_question(system: SystemSpec, task: str) -> str:
    """Return the default question of a task about a system; if its layer is not listed yet, by the numbers alone."""
    if system.kind == CIRCUIT:
        return tasks.questions(CIRCUIT, system.model, "", len(system.options.get("members", ())))[task]
    place = {"model__name": system.model, "name": system.layer}
    layer = Layer.objects.filter(**place).select_related("model").first()
    kind, name = (layer.kind, layer.name_of(system.unit)) if layer else ("", "")
    return tasks.questions(kind, system.model, system.layer, system.unit, name)[task]


def draft_like(run: Run, **changed: Any) -> Run:
    """Return a draft of the same query, tools and settings, with the given changes."""
    same = {name: getattr(run, name) for name in SAME}
    return Run(**same | changed)
