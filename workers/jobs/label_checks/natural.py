"""Test a label on held-out images at their natural base rate: activation against "does the image show the label".

r and AUPRC are the main scores of a check, because they fall both for labels that are too narrow and for labels that
are
too broad (NeuronEval, 2506.05774). `floors` puts them in context.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from experiments.label_checks.requests import BACKBONE, PEOPLE
from experiments.models import LabelCheck
from workers.errors import MissingPart
from workers.jobs.label_checks.floors import FloorSource
from workers.jobs.label_checks.held_out import HeldOut, read_held_out
from workers.jobs.label_checks.images import measure, store
from workers.jobs.label_checks.judge_answers import Floats, JudgeAnswers
from workers.jobs.label_checks.other_tests import run_other_tests
from workers.jobs.label_checks.parts import fuzz
from workers.jobs.label_checks.people import list_asked, read_answers
from workers.jobs.label_checks.sampling import draw_images, judge_enough_images
from workers.jobs.label_checks.subject import CheckedUnit
from workers.jobs.label_checks.vlm_judge import judge_images
from workers.lab.measured_splits import PILOT
from workers.metrics.members import score_members
from workers.metrics.natural import PRESENT, find_surprises, score_natural
from workers.protocols import CircuitSubject, Progress
from workers.record.circuits import CIRCUIT, MEMBERS_LAYER, CircuitFindings
from workers.record.label_checks import CheckImage, NaturalResult

MAX_SURPRISES = 6
"""Surprises of either kind."""
_NO_JUDGE = (
    "There is no judge of natural images: MAIA_PRESENCE_JUDGE is not set, and no backbone that sees images was "
    "named. Choose one, or have people judge the images."
)


@dataclass(frozen=True)
class JudgedImages:
    """The data behind the figures of a check, (n,) each. `weights` as in `JudgeAnswers`."""

    activations: Floats
    answers: Floats
    weights: Floats | None


def check_natural(
    check: LabelCheck, unit: CheckedUnit, progress: Progress
) -> tuple[NaturalResult, JudgedImages | None]:
    """Return the result, and the judged images, None if there are none.

    Raises RequestError if the label has no testable content, Cancelled, and the errors of the judge.
    """
    lab, spec = unit.lab, unit.spec
    try:
        # Measuring is cheap compared with judging, so the pilot is measured in full
        pilot = read_held_out(check, unit, progress)
    except MissingPart as error:
        return NaturalResult(dataset=check.dataset, problem=str(error)), None
    held, said = _judge_presence(check, unit, pilot, progress)
    if said.problem:
        return NaturalResult(dataset=check.dataset, judge=said.judge, problem=said.problem), None
    place = lab.subject(spec).spec
    threshold = lab.index_of(spec).unit(place.layer, place.unit, progress).quantile
    seed = int(check.key[:8], 16)
    scores = score_natural(held.activations, said.answers, said.weights, threshold=threshold, seed=seed)
    references = FloorSource(check, unit, held, said, scores)
    floors = references.measure_floors(progress)
    bright, dark = _find_surprises(unit, held, said, progress)
    kept = _choose_kept(said)
    found = NaturalResult(
        dataset=check.dataset,
        judge=said.judge,
        exact=said.exact,
        images=int(np.isfinite(said.answers).sum()),
        positives=scores.positives,
        unread=scores.missing if said.weights is None else said.unread,
        base_rate=scores.base_rate,
        threshold=threshold,
        pearson=scores.r,
        p_value=scores.p_value,
        auprc=scores.auprc,
        f1=scores.f1,
        deciles=tuple(each.r for each in scores.deciles),
        floors=floors.each,
        floor_spreads=floors.spreads,
        ceiling=references.measure_ceiling(progress),
        activations=tuple(round(float(each), 5) for each in held.activations[kept]),
        expected=tuple(None if np.isnan(each) else round(float(each), 3) for each in said.answers[kept]),
        bright_without=bright,
        dark_with=dark,
        circuit=_compare_members(check, unit, held, said, progress) if spec.kind == CIRCUIT else None,
        other_tests=replace(
            run_other_tests(held, said, threshold, place.unit, seed=seed),
            fuzzing=fuzz(check, unit, held, threshold, progress),
        ),
    )
    return found, JudgedImages(held.activations, said.answers, said.weights)


def _compare_members(
    check: LabelCheck, unit: CheckedUnit, held: HeldOut, said: JudgeAnswers, progress: Progress
) -> CircuitFindings:
    """Compare the members of a circuit on the judged images."""
    count = len(held.positions) if said.weights is None else int(check.kept["sample"]["images"])
    positions, table = held.split.activations(MEMBERS_LAYER, count, progress)
    rows = {int(position): row for row, position in enumerate(positions)}
    found = [rows.get(int(position)) for position in held.positions]
    members = cast("CircuitSubject", unit.lab.subject(unit.spec))
    shares = np.array([np.full(table.shape[1], np.nan) if row is None else table[row] for row in found], np.float64)
    return score_members(members.members, shares / members.find_thresholds(), said.answers, said.weights)


def _choose_kept(said: JudgeAnswers) -> NDArray[np.int64]:
    """Return the places of images that the result lists: those of the pilot, and later ones that show the label. A
    weighted sample is listed in full."""
    places = np.arange(len(said.answers))
    return places[(places < PILOT) | (said.answers >= PRESENT)]


def _find_surprises(
    unit: CheckedUnit, held: HeldOut, said: JudgeAnswers, progress: Progress
) -> tuple[tuple[CheckImage, ...], tuple[CheckImage, ...]]:
    """Return the brightest images that do not show the label, and the darkest that do, stored and masked."""
    found = find_surprises(held.activations, said.answers, MAX_SURPRISES)
    wanted = [*found.bright, *found.dark]
    keys = store([held.split.picture(int(held.positions[at])) for at in wanted])
    answers = measure(unit.spec, keys, progress)
    images = [
        CheckImage(key, answers[key].masked, answers[key].activation, float(said.answers[at]))
        for key, at in zip(keys, wanted, strict=True)
    ]
    return tuple(images[: len(found.bright)]), tuple(images[len(found.bright) :])


def _judge_presence(
    check: LabelCheck, unit: CheckedUnit, pilot: HeldOut, progress: Progress
) -> tuple[HeldOut, JudgeAnswers]:
    """Return the images that the check's judge is asked about, and its answers.

    Raises RequestError if the label has no content that can be tested, Cancelled, and the errors of a backbone.
    """
    named = str(check.options.get("judge") or "")
    if not named:
        return pilot, JudgeAnswers("", np.full(len(pilot.positions), np.nan), problem=_NO_JUDGE)
    if named == PEOPLE:
        held = list_asked(check, unit, pilot, progress)
        return held, read_answers(check, held.positions)
    # A backbone costs money for each image, so it judges a weighted sample.
    if named == BACKBONE:
        held, weights = draw_images(check, unit, pilot, progress)
        return held, judge_images(check, check.text, held, weights, progress)
    return judge_enough_images(check, unit, named, pilot, progress)
