"""The scripted scientist looks for biases of toybox's classes: does it find those that are planted, and no false ones?

A statement is false if fresh scenes, which the scientist never saw, do not bear it out. Networks have biases of their
own beside the planted ones, so what is true is measured. Set MAIA_BENCH_SEEDS for other seeds, such as "3,4".
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.benches.bench_scripted import STATE
from tests.support.toybox_run import play
from workers.bias.statements import BiasStatement, check_run
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings
from workers.record.events import Ended
from workers.record.systems import SystemSpec
from workers.sandbox.host import ZygoteSandbox
from workers.toybox.biased import FRESH


@dataclass(frozen=True)
class Row:
    """What came of one class."""

    statements: list[BiasStatement]
    planted: str
    real: dict[str, float]
    """Context -> true difference, of those that count as biases."""
    seconds: float

    @property
    def false(self) -> list[str]:
        """Statements that the run's own test bears out, and the truth does not."""
        told = [(each.test.context, each.test.effect or 0.0) for each in self.statements if each.test.holds]
        return [word for word, effect in told if self.real.get(word, 0.0) * effect <= 0]

    @property
    def found(self) -> bool:
        return any(each.test.context == self.planted and each.test.holds for each in self.statements)


@pytest.mark.bench
@pytest.mark.timeout(0)
def test_planted_biases_of_six_classes() -> None:
    seeds = [int(each) for each in os.environ.get("MAIA_BENCH_SEEDS", "0").split(",")]
    rows = []
    laboratory = Laboratory(LabSettings(STATE, words_per_second=0))
    with ZygoteSandbox() as sandbox:
        for seed in seeds:
            model: Any = laboratory.model(f"toybox-biased:seed-{seed}")
            for noun in model.planted:
                rows.append(study(laboratory, sandbox, model, noun, seed))
                print(write_line(noun, seed, rows[-1]), flush=True)
    found, visible = print_sums(rows)
    assert found >= 0.5 * visible


def print_sums(rows: Sequence[Row]) -> tuple[int, int]:
    """Returns how many planted biases were found, of how many that show."""
    visible = [row for row in rows if row.planted in row.real]
    found, false = sum(row.found for row in visible), sum(len(row.false) for row in rows)
    print(f"planted {len(rows)}, of these visible on fresh scenes {len(visible)}, of these found {found}")
    print(f"statements {sum(len(row.statements) for row in rows)}, false {false}, {false / len(rows):.3f} a run")
    return found, len(visible)


def study(laboratory: Laboratory, sandbox: ZygoteSandbox, model: Any, noun: str, seed: int, fresh: int = FRESH) -> Row:
    """A run on a class; the truth is measured on `fresh` scenes."""
    unit = model.classes.index(noun)
    spec = SystemSpec("logit", model.name, "logits", unit)
    question = f"In which contexts does the model find “{noun}” (unit {unit} of logits) more or less probable?"
    began = time.monotonic()
    events = play(laboratory, sandbox, spec, seed=seed, task="bias", question=question)
    took = time.monotonic() - began
    end = events[-1].payload
    assert isinstance(end, Ended)
    statements = check_run(end.conclusion.bias, [event.payload for event in events])
    real = {each.context: each.size for each in model.list_effects(unit, fresh) if each.real}
    return Row(statements, model.planted[noun], real, took)


def write_line(noun: str, seed: int, row: Row) -> str:
    told = ", ".join(
        f"{each.context} g={each.effect or 0:+.2f} p={each.adjusted_p or 0:.4f}{'' if each.holds else ' (not)'}"
        for each in (statement.test for statement in row.statements)
    )
    true = ", ".join(f"{word} {size:+.2f}" for word, size in row.real.items()) or "none"
    return f"{seed} {noun:9} planted {row.planted:7} {row.seconds:4.1f} s  says {told or 'none'}  true {true}"
