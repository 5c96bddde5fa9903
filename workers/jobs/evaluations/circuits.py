"""Circuits against sets of neurons: how well do a few latents or units of a layer explain a class?

Random classes are compared with random circuits and plain neurons of the same size. Then planted circuits, with
followers that are active but not read, test whether the search finds what was planted.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import cast

from experiments.core import compatibility
from experiments.models import Evaluation, EvaluationItem, Layer
from experiments.models.stored import Scalar
from workers.circuits.finding import SHARES
from workers.circuits.planted import RULES, Rule, plant, search_planted
from workers.errors import RequestError
from workers.jobs import circuits
from workers.jobs.evaluations.circuit_figures import CIRCUIT, CLASSES, MAIN_SHARE, PLANTED, name_score, summarise
from workers.jobs.evaluations.evaluation_type import EvaluationType, find_layers, make_item
from workers.protocols import Progress
from workers.record.circuits import CircuitCurve, CircuitReport

_IMAGES = 24
"""Number of images with the most evidence of a class: half of them select the nodes, the other half measures."""
_SEEDS = 2
_PLANTED = 5
"""Number of planted circuits per rule."""


def _plan(evaluation: Evaluation, progress: Progress) -> list[EvaluationItem]:
    """Plan random classes, each with every autoencoder, then the planted circuits."""
    del progress
    options = evaluation.options
    model = str(options.get("model") or compatibility.TOYBOX)
    layers = find_layers(model)
    classes = next((each for each in layers if each.kind == "logit"), None)
    if classes is None:
        raise RequestError(f"{model} knows no classes, so nothing of it rests on a circuit. Choose a classifier.")
    layer = _find_layer(model, layers, [str(each) for each in options.get("layers") or []])
    # A small classifier may have fewer classes
    count = min(int(options.get("units") or evaluation.row_of_kind.units), classes.units)
    # Sorted, so that items lie in the order of the classes.
    chosen = sorted(random.Random(f"classes {evaluation.seed} {model}").sample(range(classes.units), count))
    studied = [str(each) for each in options.get("autoencoders") or []] or [model]
    found = [
        make_item(classes, number, CLASSES, CIRCUIT, studied=each, place=layer) for number in chosen for each in studied
    ]
    return [*found, *_plan_planted(evaluation.seed)]


def _find_layer(model: str, layers: Sequence[Layer], named: Sequence[str]) -> str:
    """Return the named layer, or else the last one before the classes. Raises RequestError."""
    there = [each.name for each in layers if each.kind != "logit"]
    if len(named) > 1:
        raise RequestError(f"A circuit is looked for in one layer, not in {len(named)}: name one of {model}.")
    if named and named[0] not in there:
        raise RequestError(f"{model} has no layer {named[0][:60]!r}. Choose one of {', '.join(there)}.")
    if not there:
        raise RequestError(f"{model} has no layer of units. Choose another classifier.")
    return named[0] if named else there[-1]


def _plan_planted(seed: int) -> list[EvaluationItem]:
    """Plan a few circuits of each rule, in turn. They have no unit in the catalogue."""
    # Another seed plants other circuits.
    numbers = range(seed * _PLANTED, (seed + 1) * _PLANTED)
    return [
        EvaluationItem(
            group=RULES[rule],
            source=PLANTED,
            unit_name=f"planted / {RULES[rule]} / circuit {number}",
            options={"rule": rule, "number": number},
        )
        for number in numbers
        for rule in RULES
    ]


def _score(evaluation: Evaluation, item: EvaluationItem, progress: Progress) -> None:
    item.reason = ""
    if item.source == PLANTED:
        rule = cast("Rule", str(item.options["rule"]))
        found = search_planted(plant(int(item.options["number"]), rule), progress)
        item.scores = {"members": found.members, "recovered": found.found, "followers": found.followers}
        return
    if item.unit is None:
        raise RequestError(f"{item.unit_name} is not in the catalogue any more.")
    report = circuits.find(
        str(item.options["studied"]),
        str(item.options["place"]),
        str(item.unit.number),
        str(evaluation.options.get("dataset") or "") or compatibility.find_own_dataset(item.unit.layer.model.name),
        _IMAGES,
        int(evaluation.options.get("repeats") or _SEEDS),
        progress,
        exact=False,  # Exact effects need one pass per latent: minutes per class
    )
    item.scores, item.reason = {"nodes": report.nodes, **_read_curves(report)}, report.why


def _read_curves(report: CircuitReport) -> Mapping[str, Scalar]:
    """Return means over seeds by method and share of nodes. Scores of the circuit itself also get plain names."""
    found: dict[str, Scalar] = {}
    for curve in report.curves:
        for share in SHARES:
            found |= _read_point(curve, share, report.nodes)
    own = next((curve for name in ("effect", "gradients") for curve in report.curves if curve.method == name), None)
    if own is not None:
        for measure in ("faithfulness", "completeness"):
            found[measure] = found[name_score(measure, own.method, MAIN_SHARE)]
    return found


def _read_point(curve: CircuitCurve, share: float, nodes: int) -> Mapping[str, Scalar]:
    """Return both measures at the size nearest to a share of the nodes."""
    # Curves are measured at a few sizes only; at least one node is kept.
    at = curve.sizes.index(max(1, round(share * nodes)))
    both = {"faithfulness": curve.faithfulness[at].value, "completeness": curve.completeness[at].value}
    return {name_score(measure, curve.method, share): value for measure, value in both.items() if value is not None}


EVALUATION_TYPE = EvaluationType(_plan, summarise, _score, checks_labels=False, gives_labels=False)
