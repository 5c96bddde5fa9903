"""Run one program in the sandbox against a unit, for the command `experiment`. Saves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workers.jobs.label_checks.label_tests import choose_rules
from workers.jobs.laboratory import laboratory, sandbox
from workers.lab.memory import ImagesInMemory, StorageBudget
from workers.protocols import Bounds
from workers.record.systems import SystemSpec


def run_program(
    program: str,
    spec: SystemSpec,
    *,
    seed: int,
    seconds: float,
    toolset: str,
    progress: Callable[[str, int, int], None],
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Run the program on a system, for at most `seconds` of its own time. Return the result as plain data for JSON.

    `progress` reports long work, such as the first index of a layer; `stopped` returns True to cancel. Raises
    UnknownName, MachineryError, Cancelled.
    """
    from workers.sandbox.program import program_style

    # Nothing is saved, but the limit on images applies as in a run
    images = ImagesInMemory(StorageBudget())
    context = laboratory().experiment_context(
        spec, images, seed, toolset=toolset, label_tests=choose_rules(spec), ablation=True, progress=progress
    )
    result = sandbox().run(
        program,
        context.calls(program_style(program)),
        {**context.facts, "experiment.seed": seed},
        bounds=Bounds(seconds=seconds),
        cancelled=stopped,
    )
    observations = [each for entry in context.tools.entries for each in entry.observations]
    return {
        "status": result.status,
        "output": result.output,
        "output_truncated": result.output_truncated,
        "error": result.error,
        "seconds": round(result.seconds, 6),
        "observations": [{"title": each.title, "activation": each.activation} for each in observations],
        "texts": [entry.text for entry in context.tools.entries if entry.text],
        "calls": [{"tool": call.name, "seconds": round(call.seconds, 6)} for call in result.calls],
    }
