"""Twenty random units of toybox-net's layer4 and the scripted scientist: does it conclude, and are its labels right?

Everything is real: dataset, exemplar index, renderer, eyes, sandbox, loop. Units are drawn with the printed seed; set
MAIA_BENCH_SEED for others. A unit is dead if no image of the dataset activates it.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import pytest
from tqdm import tqdm

from tests.support.installation import ROOT
from tests.support.label_auc import label_auc, shuffle_labels
from tests.support.toybox_run import play
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings, Subject
from workers.record.events import Ended, Replied
from workers.record.systems import SystemSpec
from workers.sandbox.host import ZygoteSandbox
from workers.toybox.world.render import render
from workers.toybox.world.scenes import Scene

LAYER = "layer4"
UNITS = 20
GOAL = 0.85
STATE = ROOT / "var" / "bench"
"""Scenes and indexes are kept from one measurement to the next; their names follow the weights and the renderer."""


@dataclass(frozen=True)
class Row:
    """What came of one unit."""

    unit: int
    dead: bool
    concluded: bool
    label: str
    rounds: int
    seconds: float
    subject: Subject


@pytest.mark.bench
@pytest.mark.timeout(0)
def test_labels_of_twenty_random_units() -> None:
    seed = int(os.environ.get("MAIA_BENCH_SEED", "0"))
    laboratory = Laboratory(LabSettings(STATE, words_per_second=0))
    count = next(layer.units for layer in laboratory.layers("toybox") if layer.name == LAYER)
    units = sorted(Random(f"twenty units {seed}").sample(range(count), UNITS))
    with ZygoteSandbox() as sandbox:
        rows = [study(laboratory, sandbox, unit, seed) for unit in tqdm(units, unit="unit")]
    print_table(rows, seed)
    assert all(row.concluded for row in rows)
    assert not any(row.label for row in rows if row.dead)


def study(laboratory: Laboratory, sandbox: ZygoteSandbox, unit: int, seed: int) -> Row:
    """Let the scientist study one unit."""
    spec = SystemSpec("unit", "toybox", LAYER, unit)
    subject = laboratory.subject(spec)
    dead = not subject.exemplars()
    began = time.monotonic()
    events = play(laboratory, sandbox, spec, seed=seed)
    end = events[-1].payload
    labels = end.conclusion.labels if isinstance(end, Ended) else ()
    rounds = sum(isinstance(event.payload, Replied) for event in events)
    took = time.monotonic() - began
    return Row(unit, dead, events[-1].kind == "concluded", labels[0] if labels else "", rounds, took, subject)


def print_table(rows: Sequence[Row], seed: int) -> None:
    labelled = [row for row in rows if row.label and not row.dead]
    unnamed = sum(not row.dead and not row.label for row in rows)
    dealt = shuffle_labels(len(labelled), seed) if labelled else []
    judged = [label_auc(row.label, responses(row.subject), seed) for row in labelled]
    others = [labelled[place] for place in dealt]
    floor = [label_auc(other.label, responses(row.subject), seed) for row, other in zip(labelled, others, strict=True)]
    print(f"\nScripted scientist on {len(rows)} random units of toybox {LAYER}, seed {seed}")
    print(f"{'unit':>6}{'rounds':>8}{'seconds':>9}{'AUC':>8}{'shuffled':>10}  label")
    figures = {row.unit: both for row, *both in zip(labelled, judged, floor, strict=True)}
    for row in rows:
        auc, low = figures.get(row.unit, (math.nan, math.nan))
        label = row.label or ("none: dead" if row.dead else "none")
        print(f"{row.unit:6}{row.rounds:8}{row.seconds:9.1f}{auc:8.3f}{low:10.3f}  {label}")
    print(f"\n{'figure':44}{'measured':>10}{'goal':>8}")
    print(f"{'share concluded':44}{statistics.mean(row.concluded for row in rows):10.2f}{1:8.2f}")
    print(f"{'median rounds':44}{statistics.median(row.rounds for row in rows):10.0f}")
    print(f"{'median seconds':44}{statistics.median(row.seconds for row in rows):10.1f}")
    print(f"{'median AUC of labels':44}{middle(judged):10.3f}{GOAL:8.2f}")
    print(f"{'the same, 0.5 for a unit alive without one':44}{middle(judged + [0.5] * unnamed):10.3f}{GOAL:8.2f}")
    print(f"{'median AUC of shuffled labels, the floor':44}{middle(floor):10.3f}")
    print(f"{'dead units, left out':44}{sum(row.dead for row in rows):10}")
    print(f"{'dead units with a label':44}{sum(row.dead and bool(row.label) for row in rows):10}{0:8}")
    print(f"{'units alive without a label':44}{unnamed:10}")


def responses(subject: Subject) -> Callable[[Sequence[Scene]], list[float]]:
    """The unit, as the judge knows it."""
    return lambda scenes: [each.activation for each in subject.respond([render(scene) for scene in scenes])]


def middle(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan
