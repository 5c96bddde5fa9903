"""Plays rounds of a run that has been claimed: the database on one side, the laboratory on the other.

Called by `rounds` (one round for each job) and by `foreground` (the command line).
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import fields
from importlib.metadata import version
from threading import Event

from experiments.models import Run
from workers.agent.events import Ended, Limits, Started, Task
from workers.agent.loop import Outcome, play_round, start
from workers.errors import RequestError
from workers.jobs import jail
from workers.jobs.images import ImagesInDatabase
from workers.jobs.laboratory import laboratory, sandbox
from workers.jobs.lease import MOST_CLAIMS
from workers.jobs.notebook import DatabaseNotebook
from workers.lab.reference import reference
from workers.protocols import Bounds, SystemSpec
from workers.sandbox.program import dialect

POISON = (
    "{claims} workers in a row ended while they held this run, without recording a step. The worker's output says why; "
    "too little memory is the usual reason. What was recorded before is kept."
)

NotebookOf = Callable[[Run, ImagesInDatabase, Event], DatabaseNotebook]


def play(run: Run, lost: Event, notebook_of: NotebookOf = DatabaseNotebook) -> bool:
    """Play one round. True while the run goes on. Raises MachineryError, LeaseLost; see `agent.loop.play_round`."""
    images = ImagesInDatabase()
    notebook = notebook_of(run, images, lost)
    if run.claims > MOST_CLAIMS:
        notebook.append("failed", Ended(POISON.format(claims=run.claims - 1)))
        return False
    if not run.last_seq and not begin(run, notebook):
        return False
    backbone = laboratory().backbone(run.backbone)
    return play_round(notebook, backbone, Runner(run, notebook, images), images.load)


def begin(run: Run, notebook: DatabaseNotebook) -> bool:
    """Record the first event. False if what was asked for cannot be done, which ends the run."""
    try:
        notebook.append("started", first_event(run))
    except RequestError as error:
        notebook.append("failed", Ended(str(error)))
        return False
    return True


def first_event(run: Run) -> Started:
    """What the agent is told. Raises RequestError if the question, a limit or the system makes no sense."""
    laboratory().check(spec_of(run))
    laboratory().backbone(run.backbone)
    model = laboratory().model(run.model)
    return start(
        run.question,
        task_of(run),
        spec_of(run),
        backbone=run.backbone,
        limits=limits_of(run),
        seed=run.seed,
        reference=reference(),
        versions=versions() | {"model": f"{run.model} {model.revision}", "sandbox": jail.record()},
    )


class Runner:
    """Runs an experiment's program in the sandbox, against the system and the tools of the run."""

    def __init__(self, run: Run, notebook: DatabaseNotebook, images: ImagesInDatabase) -> None:
        self.run = run
        self.notebook = notebook
        self.images = images

    def __call__(self, code: str, number: int, state: bytes) -> Outcome:
        bench = laboratory().bench(
            spec_of(self.run),
            self.images,
            seed=self.run.seed,
            earlier=self.notebook.entries(),
            progress=self.notebook.progress,
        )
        result = sandbox().run(
            code,
            bench.calls(dialect(code)),
            {**bench.facts, "experiment.seed": self.run.seed + number},
            bounds=Bounds(),
            state=state,
            cancelled=self.notebook.cancelled,
        )
        return Outcome(result, tuple(bench.tools.entries), bench.tools.threshold)


def spec_of(run: Run) -> SystemSpec:
    return SystemSpec(run.system_kind, run.model, run.layer, run.unit, run.options)


def task_of(run: Run) -> Task:
    """The task as it was saved; `start` refuses one that does not exist."""
    task: Task = run.task  # type: ignore[assignment]
    return task


def limits_of(run: Run) -> Limits:
    """The run's limits; one that is missing or null is none."""
    return Limits(**{each.name: run.limits.get(each.name) for each in fields(Limits)})


def versions() -> dict[str, str]:
    """What made the results, for whoever wants to make them again."""
    packages = ("torch", "numpy", "pillow", "panda3d")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
