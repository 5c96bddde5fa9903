"""Functions whose code is known (FIND, Schwettmann et al., NeurIPS 2023): which method finds out what they compute?

The methods are the agent, the agent with hints (some inputs with outputs to start with), and one-shot: the same hints
without experiments, as MILAN describes a unit by its exemplars. Code is run on held-out inputs; a description is judged
by ten choices of one in three. Functions that cannot be called here are left out and listed, never scored 0.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import cast

from experiments.core.compatibility import FUNCTIONS, SCRIPTED_FUNCTIONS
from experiments.models import Evaluation, EvaluationItem, Layer
from experiments.models.stored import Scalar
from workers.errors import MissingPart
from workers.functions.baselines import CONCLUDE_ONCE, FunctionAnswer
from workers.functions.black_box import BlackBox, FunctionModel
from workers.functions.one_shot import ask_once, parse_once
from workers.jobs import functions
from workers.jobs.evaluations.evaluation_type import EvaluationType, find_layers, make_item
from workers.jobs.evaluations.find_figures import DEFECTS, LEFT_OUT, summarise
from workers.jobs.evaluations.pairwise_judging import find_judge
from workers.jobs.evaluations.sources import AGENT, ONE_SHOT, read_run
from workers.jobs.evaluations.truth import note_cost
from workers.jobs.label_checks.vlm_request import ask, find_backbone
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress
from workers.record.functions import FunctionScore
from workers.record.tasks import FUNCTION

_LABEL_CHARS = 1_000


def _plan(evaluation: Evaluation, progress: Progress) -> list[EvaluationItem]:
    """Draw random functions of each family."""
    wanted = evaluation.options.get("layers") or []
    count = int(evaluation.options.get("units") or evaluation.row_of_kind.units)
    layers = [each for each in find_layers(str(evaluation.options.get("model") or FUNCTIONS)) if each.kind == FUNCTION]
    chosen: list[tuple[int, int, EvaluationItem]] = []
    left_out: Counter[str] = Counter()
    defects: Counter[str] = Counter()
    for place, layer in enumerate(each for each in layers if not wanted or each.name in wanted):
        progress(f"Choosing functions of {layer.name}", place, len(layers))
        model = cast("FunctionModel", laboratory().model(layer.model.name))
        for at, number in enumerate(_choose(model, layer, evaluation.seed, count, left_out)):
            chosen += [(at, place, item) for item in _make_items(evaluation, layer, number)]
            known = (each.partition(":")[0] for each in model.list_defects(layer.name, number))
            defects.update(f"{layer.name}: {each}" for each in known)
    evaluation.prepared = {**evaluation.prepared, LEFT_OUT: dict(left_out), DEFECTS: dict(defects)}
    # Function by function over all families, so that an unfinished evaluation covers each.
    return [item for _, _, item in sorted(chosen, key=lambda each: each[:2])]


def _choose(model: FunctionModel, layer: Layer, seed: int, count: int, left_out: Counter[str]) -> Iterator[int]:
    """Yield functions that can be called and scored. Count the others by reason."""
    numbers = list(range(layer.units))
    # Each family has its own order, so choosing fewer families changes no function
    random.Random(f"functions {seed} {layer.name}").shuffle(numbers)
    for number in numbers:
        if not count:
            return
        if trouble := model.find_trouble(layer.name, number):
            left_out[f"{layer.name}: {trouble}"] += 1
        else:
            count -= 1
            yield number


def _make_items(evaluation: Evaluation, layer: Layer, number: int) -> Iterator[EvaluationItem]:
    """Yield the items of a function: the agent, the agent with hints if requested, one-shot."""
    yield make_item(layer, number, layer.name, AGENT)
    if evaluation.options.get("hints"):
        yield make_item(layer, number, layer.name, AGENT, hints="yes")
    yield make_item(layer, number, layer.name, ONE_SHOT)


def _score(evaluation: Evaluation, item: EvaluationItem, progress: Progress) -> None:
    assert item.unit is not None
    layer = item.unit.layer
    box = functions.open_box(layer.model.name, layer.name, item.unit.number)
    # Kept: money that was spent counts against the budget.
    spent = float(item.scores.get("cost") or 0)  # Cost of an interrupted attempt
    item.scores, item.reason = {"cost": spent}, ""
    if box.family == "numeric":
        item.scores["variant"] = box.truth.variant
    answer = read_run(item).conclusion if item.source == AGENT else None
    told = _conclude_once(evaluation, item, box, progress) if answer is None else _read(answer)
    item.label = told.description[:_LABEL_CHARS]
    backbone = find_judge(evaluation)
    judge = functions.ModelJudge(backbone) if backbone else None
    try:
        found = functions.score(box, told, judge)
        # Functions of texts are scored by code; the choices compare descriptions with FIND's.
        texts = functions.judge_answer(box, told, judge) if judge and box.family == "strings" else None
    finally:
        if judge:
            item.scores = {**item.scores, "cost": float(item.scores.get("cost") or 0) + judge.cost}
    # An error rather than a score of 0
    if found.outcome == "not judged":
        raise MissingPart(found.why)
    item.reason = item.reason or found.why or ("" if found.outcome == "scored" else found.outcome)
    item.scores |= _list_scores(found, texts)


def _list_scores(found: FunctionScore, texts: FunctionScore | None) -> dict[str, Scalar]:
    """Return the scores of an item: from its code, and from choices by its description. `texts` holds the choices for
    functions of texts."""
    judged = found if found.judge else texts
    measured: dict[str, Scalar] = {"success": found.success, "error": found.error}
    measured |= {} if found.judge else {"exact": found.right}
    measured |= {"choices": judged.right, "ceiling": judged.ceiling, "judge": judged.judge} if judged else {}
    return {name: value for name, value in measured.items() if value is not None}


def _read(conclusion: dict[str, str]) -> FunctionAnswer:
    """Return a run's conclusion; an empty answer if there is none."""
    return FunctionAnswer(*(str(conclusion.get(name) or "") for name in ("description", "domain", "code")))


def _conclude_once(evaluation: Evaluation, item: EvaluationItem, box: BlackBox, progress: Progress) -> FunctionAnswer:
    """Return an answer from the hints alone, without experiments. Raises the errors of the backbone."""
    pairs = functions.call_hints(box)
    if evaluation.backbone == SCRIPTED_FUNCTIONS:
        return CONCLUDE_ONCE[box.family](dict(pairs))
    backbone = find_backbone(evaluation.backbone, evaluation.backbone_model, sees=False, unpriced=evaluation.unpriced)
    spend = partial(note_cost, item)
    said = ask(backbone, ask_once(box.family, pairs), parse_once, spend, progress, evaluation.seed)
    # Not an error: an unreadable answer is a wrong one.
    item.reason = "" if said else f"{backbone.label} gave no answer that can be read."
    return said or FunctionAnswer("", "", "")


EVALUATION_TYPE = EvaluationType(_plan, summarise, _score, task=FUNCTION, checks_labels=False, gives_labels=False)
