"""Threads that came with an imported run, linked to the event, experiment or image here that they are about.

They stay text of another installation. A number that the run does not have is shown without a link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.comments import anchors
from experiments.core.params import MAX_COUNT
from experiments.models import Experiment, ImportedOpinions, Observation, Run, Thread


@dataclass(frozen=True)
class ImportedThread:
    """An imported thread: its anchor in words, the link to that here ("" if none), and its image."""

    said: Any
    where: str
    link: str
    observation: Observation | None


def list_imported_threads(run: Run, opinions: ImportedOpinions | None) -> list[ImportedThread]:
    """Return the threads that came with the run. The number of queries is constant."""
    given = [each for each in opinions.threads if isinstance(each, dict)] if opinions else []
    numbers, positions = _numbers_of(given, "experiment"), _numbers_of(given, "position")
    rows = run.experiments.filter(number__in=numbers).defer("state", "code", "output")
    experiments = {row.number: row for row in rows}
    # All images at any of the places named: more than are meant, no more than a few of each experiment
    placed = _numbers_of([each for each in given if _number_of(each, "position")], "experiment")
    logged = run.observations.filter(experiment__number__in=placed, position__in=positions)
    images = {(row.experiment_id, row.position): row for row in logged}
    programs = run.events.filter(seq__in=_numbers_of(given, "seq"), kind__in=anchors.PROGRAMS)
    cards = dict(programs.values_list("seq", "payload__number"))
    return [_locate(each, run, experiments, images, cards) for each in given]


def _locate(
    thread: Mapping[str, Any],
    run: Run,
    experiments: Mapping[int, Experiment],
    images: Mapping[tuple[int, int], Observation],
    numbers: Mapping[int, int],
) -> ImportedThread:
    """Find the place of one thread, as a thread of this installation would have it."""
    number, position, seq = (_number_of(thread, name) for name in ("experiment", "position", "seq"))
    experiment = experiments.get(number or 0)
    observation = images.get((experiment.pk, position)) if experiment and position else None
    here = seq if seq and seq <= run.last_seq else None
    spot, at = anchors.spot_of(Thread(run=run, seq=here, experiment=experiment), numbers)
    link = f"{run.get_absolute_url()}?at={at}#{spot}" if at is not None and (experiment or not number) else ""
    return ImportedThread(thread, _describe_place(number, position, seq, observation), link, observation)


def _describe_place(number: int | None, position: int | None, seq: int | None, observation: Observation | None) -> str:
    if observation:
        return f"Image “{observation.title or 'untitled'}” of experiment {number}"
    if number:
        return f"Image {position} of experiment {number}" if position else f"Experiment {number}"
    return f"Event {seq}" if seq else "The run"


def _numbers_of(given: Iterable[Mapping[str, Any]], name: str) -> set[int]:
    return {number for each in given if (number := _number_of(each, name)) is not None}


def _number_of(thread: Mapping[str, Any], name: str) -> int | None:
    """Return a number that a row can have; None for anything else."""
    found = thread.get(name)
    # `type`, since a bool is an int as well.
    return found if type(found) is int and 0 < found <= MAX_COUNT else None
