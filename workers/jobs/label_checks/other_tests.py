"""Detection, intruder and simulation on the images that a check's judge was asked about; nothing is asked for them."""

from __future__ import annotations

from workers.jobs.label_checks.judge_answers import Floats, JudgeAnswers
from workers.metrics.detection import score_detection, score_intruder
from workers.metrics.simulation import score_simulation
from workers.record.estimates import Estimate
from workers.record.other_tests import IntruderResult, OtherTests

ONE_SAMPLE = (
    "the judge was asked about a sample that holds more described images than there are, and sets of five drawn from "
    "it would be easier than sets of all images"
)


def run_other_tests(activations: Floats, said: JudgeAnswers, threshold: float, *, seed: int) -> OtherTests:
    """Activations of the images in the order of the answers; `threshold` is the unit's mask threshold.

    A language model, and people, are asked about a weighted sample: detection and simulation weigh its images, and
    there is no intruder test.
    """
    intruder = (
        score_intruder(activations, said.answers, threshold, seed=seed)
        if said.weights is None
        else IntruderResult(Estimate(None, why=ONE_SAMPLE))
    )
    return OtherTests(
        detection=score_detection(activations, said.answers, threshold, said.weights, seed=seed),
        intruder=intruder,
        simulation=score_simulation(activations, said.answers, said.weights, seed=seed),
    )
