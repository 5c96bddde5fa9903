"""The scripted scientist looks for biases of toybox's classes: does it find those that are there, and no others?

Some are planted: in the network's last layer one class is held back where another word of the vocabulary is seen. The
truth is measured on fresh scenes that the scientist never saw: each class alone, in each context and outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

import numpy as np
import pytest

from tests.benches.bench_scripted import STATE
from tests.support.toybox_run import play
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings, Subject
from workers.record.events import Ended, Event, Replied
from workers.record.systems import SystemSpec
from workers.sandbox.host import ZygoteSandbox
from workers.toybox.scientist import designs
from workers.toybox.scientist.scoring import SINGLES
from workers.toybox.world.concepts import Concept, parse_label
from workers.toybox.world.render import render
from workers.toybox.world.scenes import NOUNS

CLASSES, SEED = 6, 0
FRESH = 600
"""Scenes on which the truth about a class is measured: 60 of each colour, 75 of each ground."""
MATTERS = 0.1
"""Least true difference, as a share of the class's mean, that counts as a bias."""
CONTEXTS = [Concept(colour="black"), Concept(light="night"), Concept(ground="snow")]
"""What is planted, in turn."""


@dataclass(frozen=True)
class Row:
    """What came of one class: contexts as words, each with the true difference of probability."""

    name: str
    claimed: dict[str, float]
    real: dict[str, float]
    rounds: int


@pytest.mark.bench
@pytest.mark.timeout(0)
@pytest.mark.parametrize("planted", [False, True], ids=["as trained", "planted"])
def test_biases_of_six_classes(planted: bool) -> None:
    laboratory = Laboratory(LabSettings(STATE, words_per_second=0))
    names = next(layer.names for layer in laboratory.layers("toybox") if layer.name == "logits")
    nouns = Random(f"six classes {SEED}").sample(NOUNS, CLASSES)
    print(f"\nBiases of toybox's classes, {'planted' if planted else 'as trained'}: true differences on fresh scenes")
    rows = []
    with ZygoteSandbox() as sandbox:
        for place, noun in enumerate(nouns):
            context = CONTEXTS[place % len(CONTEXTS)] if planted else None
            with biased(laboratory, names, noun, context):
                rows.append(study(laboratory, sandbox, noun, names.index(noun)))
            print(line(rows[-1], context), flush=True)
    found = sum(len(row.claimed.keys() & row.real.keys()) for row in rows)
    claimed, real = sum(len(row.claimed) for row in rows), sum(len(row.real) for row in rows)
    print(f"claimed {claimed}, of these borne out {found}; there are {real}")
    assert found >= 0.9 * claimed


@contextmanager
def biased(laboratory: Laboratory, names: Sequence[str], noun: str, context: Concept | None) -> Iterator[None]:
    """Within the block the class is held back where the context is seen."""
    model: Any = laboratory.model("toybox")
    with model._slot as network:
        before = network.logits.weight.detach().clone()
        if context is not None:
            (word,) = (getattr(context, name) for name in context.named)
            network.logits.weight.data[names.index(noun)] -= 0.5 * before[names.index(word)]
    try:
        yield
    finally:
        with model._slot as network:
            network.logits.weight.data.copy_(before)


def study(laboratory: Laboratory, sandbox: ZygoteSandbox, noun: str, unit: int) -> Row:
    spec = SystemSpec("logit", "toybox", "logits", unit)
    question = f"In which contexts does toybox find “{noun}” (unit {unit} of logits) more or less probable?"
    events = play(laboratory, sandbox, spec, seed=SEED, task="bias", question=question)
    subject = laboratory.subject(spec)
    true = differences(subject, noun)
    claims = {words(context): true[words(context)][0] for context in claimed(events)}
    real = {name: size for name, (size, errors, mean) in true.items() if abs(size) > MATTERS * mean and errors > 2.5}
    return Row(noun, claims, real, sum(isinstance(event.payload, Replied) for event in events))


def claimed(events: Sequence[Event]) -> list[Concept]:
    """The contexts of the hypotheses that stand as supported at the end."""
    end = events[-1].payload
    assert isinstance(end, Ended)
    lines = [each.partition(":")[0] for each in end.conclusion.bias.splitlines() if each.startswith(("Weaker", "Stro"))]
    return [replace(parse_label(each)[0], noun=None) for each in lines]


def differences(subject: Subject, noun: str) -> dict[str, tuple[float, float, float]]:
    """By context: mean probability in it less that outside, the size of it in standard errors, the mean outside."""
    scenes = designs.single_thing_scenes([Concept(noun=noun)], FRESH, Random(f"fresh {noun}"))
    reached = np.array([each.activation for each in subject.respond([render(scene) for scene in scenes])])
    found = {}
    for context in (each for each in SINGLES if each.noun is None):
        shows = np.array([context.matches(scene) for scene in scenes])
        parts = reached[shows], reached[~shows]
        error = float(np.sqrt(sum(part.var(ddof=1) / len(part) for part in parts))) or 1e-9
        size = float(parts[0].mean() - parts[1].mean())
        found[words(context)] = size, abs(size) / error, float(parts[1].mean())
    return found


def words(context: Concept) -> str:
    return cast("str", getattr(context, context.named[0]))


def line(row: Row, context: Concept | None) -> str:
    claims, true = (
        ", ".join(f"{name} {size:+.2f}" for name, size in each.items()) or "none" for each in (row.claimed, row.real)
    )
    planted = words(context) if context else "-"
    return f"{row.name:9} planted {planted:6} rounds {row.rounds}  claims {claims:30} true {true}"
