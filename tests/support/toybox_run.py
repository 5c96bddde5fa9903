"""A run on a real laboratory and sandbox, by the scripted scientist if none else, in memory: no database, no Redis."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.run_log import RunLogInMemory
from workers import registry
from workers.agent.loop import ProgramOutcome, run_agent, start
from workers.lab.laboratory import Laboratory
from workers.lab.memory import ImagesInMemory
from workers.lab.reference import build_reference
from workers.protocols import Backbone, Bounds, Sandbox
from workers.record.events import Event, ExperimentEnded
from workers.record.experiments import LogEntry
from workers.record.limits import Limits
from workers.record.systems import SystemSpec
from workers.sandbox.program import program_style

QUESTION = "What does this unit respond to?"


def play(
    laboratory: Laboratory,
    sandbox: Sandbox,
    spec: SystemSpec,
    *,
    seed: int,
    task: str = "describe",
    question: str = QUESTION,
    limits: Limits = Limits(),  # noqa: B008  frozen
    toolset: str = "toybox",
    backbone: Backbone | None = None,
) -> Sequence[Event]:
    """Play a run to its end and return its events."""
    run_log, memory = RunLogInMemory(), ImagesInMemory()
    run_log.append(
        "started",
        start(
            question,
            task,
            spec,
            backbone="scripted",
            limits=limits,
            seed=seed,
            reference=build_reference(lacks=registry.TOOLSETS[toolset].lacks),
            versions={},
        ),
    )

    def run_program(code: str, number: int, state: bytes) -> ProgramOutcome:
        context = laboratory.experiment_context(spec, memory, seed, toolset=toolset, earlier=logged(run_log.events()))
        facts = {**context.facts, "experiment.seed": seed + number}
        result = sandbox.run(code, context.calls(program_style(code)), facts, bounds=Bounds(), state=state)
        return ProgramOutcome(
            result,
            tuple(context.tools.entries),
            context.tools.exemplar_mean,
            best=context.tools.best,
            measured=context.tools.measured,
        )

    author = backbone or laboratory.backbone("scripted")
    while run_agent(run_log, author, run_program, memory.load):
        pass
    return run_log.events()


def logged(events: Sequence[Event]) -> list[LogEntry]:
    """All that the run has logged so far."""
    return [entry for event in events if isinstance(event.payload, ExperimentEnded) for entry in event.payload.entries]
