"""Biases (paper, section 5.2): contexts in which a class is found more or less probable.

Each finding is a statement, tested on the run's own images and corrected for the number of statements in the run.
Planted biases have a known truth: count how many are found, and how many statements are false.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from experiments.core import transcript
from experiments.models import Evaluation, EvaluationItem, ItemStatus, Run
from workers.bias.statements import BiasStatement, check_run
from workers.jobs.evaluations import figures
from workers.jobs.evaluations.evaluation_type import EvaluationType, find_layers, make_item
from workers.jobs.evaluations.sources import AGENT, read_run
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress
from workers.record.bias_tests import BiasTest
from workers.record.evaluations import Cell, EvaluationResult, ResultTable

DEFAULT_UNITS = 6
GOAL_FOUND, GOAL_FALSE = 0.9, 0.05
MAX_IMAGES = 8
"""Maximum number of images on either side of a statement."""


def _plan(evaluation: Evaluation, progress: Progress) -> list[EvaluationItem]:
    """Plan classes with planted biases, one seed after the other; for another model, random classes."""
    del progress
    named = str(evaluation.options.get("model") or "")
    # A given model is one network, so seeds apply only to the planted ones.
    seeds = range(evaluation.seed, evaluation.seed + (1 if named else int(evaluation.options.get("repeats") or 1)))
    items = []
    for seed in seeds:
        key = named or f"toybox-biased:seed-{seed}"
        layer = next(each for each in find_layers(key) if each.kind == "logit")
        planted = getattr(laboratory().model(key), "planted", None)
        numbers = [layer.names.index(name) for name in planted] if planted else list(range(layer.units))
        count = int(evaluation.options.get("units") or DEFAULT_UNITS)
        # Seeded, so that the same evaluation can be repeated
        if len(numbers) > count:
            numbers = sorted(random.Random(f"classes {seed}").sample(numbers, count))
        items += [make_item(layer, number, f"seed {seed}", AGENT) for number in numbers]
    return items


def _score(evaluation: Evaluation, item: EvaluationItem, progress: Progress) -> None:
    del evaluation, progress
    run = read_run(item)
    # The column is limited
    item.label, item.reason = str(run.conclusion.get("bias") or "")[:1000], ""
    statements = _check(run)
    item.evidence = {
        f"{word} “{each.stated.context}”": [seen.masked or seen.image for seen in side[:MAX_IMAGES]]
        for each in statements
        for word, side in (("with", each.sides.inside), ("without", each.sides.outside))
    }
    item.scores = {**item.scores, "statements": len(statements), "holding": sum(each.test.holds for each in statements)}
    item.scores |= _compare_with_truth(item, statements)


def _check(run: Run) -> list[BiasStatement]:
    """Return the statements of a run, tested on its logged images."""
    payloads = [row.content for row in transcript.list_events(run.pk, 0)]
    return check_run(str(run.conclusion.get("bias") or ""), payloads)


def _compare_with_truth(item: EvaluationItem, statements: Sequence[BiasStatement]) -> dict[str, Any]:
    """Return whether the planted bias was found, and how many statements fresh scenes contradict; {} without a
    truth."""
    assert item.unit is not None
    model: Any = laboratory().model(item.unit.layer.model.name)
    if not hasattr(model, "planted"):
        return {}
    name = item.unit.layer.name_of(item.unit.number)
    real = {each.context: each.size for each in model.list_effects(item.unit.number) if each.real}
    # Only what its own images support is compared with the truth.
    holding = [each for each in statements if each.test.holds]
    # A statement is false if its effect has the wrong sign, or if no effect is real
    false = sum(real.get(each.stated.context, 0.0) * (each.test.effect or 0.0) <= 0 for each in holding)
    planted = model.planted[name]
    found = any(each.stated.context == planted for each in holding)
    return {"planted": planted, "visible": planted in real, "found": found, "false": false}


def _summarise(evaluation: Evaluation, items: Sequence[EvaluationItem]) -> EvaluationResult:
    del evaluation
    done = figures.filter_source(items, AGENT)
    visible = [each for each in done if each.scores.get("visible")]
    told = [figures.count_figure("statements", "Statements a run", map(figures.score_of("statements"), done))]
    if any("found" in each.scores for each in done):
        false = figures.count_figure("false", "False statements a run", map(figures.score_of("false"), done))
        # In front: figures with a goal come first.
        told = [
            figures.share_figure(
                "found", "Planted biases found, of those that fresh scenes show", visible, "found", GOAL_FOUND
            ),
            replace(false, goal=GOAL_FALSE, at_most=True),
            *told,
        ]
    rows = sorted(
        (row for each in done if each.status == ItemStatus.DONE and each.run for row in _list_rows(each, each.run)),
        key=lambda row: -abs(row[2].value or 0.0),
    )
    columns = ("Class", "Statement", "Effect", "p", "corrected p", "Holds")
    table = ResultTable("statements", "Statements, the greatest effect first", columns, tuple(rows), _NOTE)
    return EvaluationResult(tuple(told), (table,), (), tuple(figures.note_lacking(items)))


_NOTE = (
    "Effect: difference of mean activation in standard deviations (Hedges' g), prompts with the context less without. "
    "p is corrected: on images drawn after the statements for all that their run made (Holm), "
    "on others for all contexts that titles tell apart."
)


def _list_rows(item: EvaluationItem, run: Run) -> list[tuple[Cell, ...]]:
    name = item.unit.layer.name_of(item.unit.number) if item.unit else item.unit_name
    return [
        (
            Cell(name, item=item.pk),
            Cell(each.text[:300]),
            Cell(value=each.effect, low=each.low, high=each.high, n=each.inside + each.outside),
            Cell(value=each.p),
            Cell(value=each.adjusted_p),
            Cell("yes" if each.holds else each.why or "no"),
        )
        for each in msgspec.convert(run.biases, list[BiasTest]) or [statement.test for statement in _check(run)]
    ]


EVALUATION_TYPE = EvaluationType(_plan, _summarise, _score, task="bias", checks_labels=False, gives_labels=False)
