"""Other tests on the judged images of a check: detection, also with hard negatives, intruder, and simulation.

They need no further answers. Fuzzing, which asks about parts of images, is in `parts`.
"""

from __future__ import annotations

from dataclasses import replace

from workers.jobs.label_checks.held_out import HeldOut
from workers.jobs.label_checks.judge_answers import JudgeAnswers
from workers.metrics.detection import score_detection, score_intruder
from workers.metrics.hard_negatives import (
    MIN_R,
    MIN_UNITS,
    find_neighbours,
    measure_likeness,
    measure_neighbours,
    score_hard_negatives,
)
from workers.metrics.simulation import score_simulation
from workers.record.estimates import Estimate
from workers.record.other_tests import HardNegativesResult, IntruderResult, OtherTests

ONE_SAMPLE = (
    "the judge was asked about a sample that holds more described images than there are, and sets of five drawn from "
    "it would be easier than sets of all images"
)
NO_EMBEDDING = f"fewer than {MIN_UNITS} other units of the layer vary on these images"
NO_NEIGHBOURS = f"no other unit of the layer correlates with this one by r {MIN_R} or more"


def run_other_tests(held: HeldOut, said: JudgeAnswers, threshold: float, own: int, *, seed: int) -> OtherTests:
    """Run all other tests except fuzzing.

    `threshold` is the unit's mask threshold, `own` its column in the layer's activations.
    """
    activations = held.activations
    intruder = (
        # Weighted samples hold described images more often, which makes sets easier.
        score_intruder(activations, said.answers, threshold, seed=seed)
        if said.weights is None
        else IntruderResult(Estimate(None, why=ONE_SAMPLE))
    )
    return OtherTests(
        detection=score_detection(activations, said.answers, threshold, said.weights, seed=seed),
        intruder=intruder,
        simulation=score_simulation(activations, said.answers, said.weights, seed=seed),
        alike=_score_alike(held, said, threshold, own, seed),
        neighbours=_score_neighbours(held, said, threshold, own, seed),
    )


def _score_alike(held: HeldOut, said: JudgeAnswers, threshold: float, own: int, seed: int) -> HardNegativesResult:
    hardness = measure_likeness(held.activations, held.table, own)
    if hardness is None:
        return HardNegativesResult(Estimate(None, why=NO_EMBEDDING))
    return score_hard_negatives(held.activations, said.answers, threshold, hardness, said.weights, seed=seed)


def _score_neighbours(held: HeldOut, said: JudgeAnswers, threshold: float, own: int, seed: int) -> HardNegativesResult:
    neighbours = find_neighbours(held.activations, held.table, own, said.weights)
    if not neighbours:
        return HardNegativesResult(Estimate(None, why=NO_NEIGHBOURS))
    hardness = measure_neighbours(held.table, neighbours)
    found = score_hard_negatives(held.activations, said.answers, threshold, hardness, said.weights, seed=seed)
    return replace(found, neighbours=neighbours)
