"""Choose the natural images that a judge sees: all that a free judge needs, or a weighted sample.

Language models and people see few images, drawn by strata based on a free judge's guess (`workers.metrics.strata`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments.models import LabelCheck
from experiments.models.evaluation import DEVELOPMENT
from workers import registry
from workers.errors import RequestError
from workers.jobs.label_checks.held_out import HeldOut, read_held_out
from workers.jobs.label_checks.judge_answers import Floats, JudgeAnswers
from workers.jobs.label_checks.subject import CheckedUnit
from workers.jobs.laboratory import laboratory
from workers.lab.presence import judge_images
from workers.metrics.natural import PRESENT, plan_images
from workers.metrics.strata import draw_strata
from workers.protocols import Progress

DRAWS = 180
"""Number of natural images for a language model or people, as in 2506.07985, "Beyond Top Activations"."""


def ask_free_judge(named: str, label: str, held: HeldOut, progress: Progress) -> JudgeAnswers:
    """Return a plug-in's answers for all these images. Raises RequestError if it cannot test the label, and
    MissingPart."""
    judge = laboratory().presence_judge(named)
    answers = judge_images(judge, label, held.split.images, held.positions.tolist(), progress)
    return JudgeAnswers(registry.label(registry.PRESENCE_JUDGES, named), answers, exact=judge.kind == "exact")


def judge_enough_images(
    check: LabelCheck, unit: CheckedUnit, named: str, pilot: HeldOut, progress: Progress
) -> tuple[HeldOut, JudgeAnswers]:
    """Return a plug-in's answers for the pilot, and for more images if too few of the pilot show the label.

    A label tried during a run uses only the pilot. Raises the errors of `ask_free_judge`, and Cancelled.
    """
    said, n = ask_free_judge(named, check.text, pilot, progress), len(pilot.positions)
    count = plan_images(int((said.answers >= PRESENT).sum()), n)
    # If nothing could be judged, more images will not help
    if check.split == DEVELOPMENT or count <= n or not np.isfinite(said.answers).any():
        return pilot, said
    held = read_held_out(check, unit, progress, count)
    # There are no more.
    if len(held.positions) == n:
        return pilot, said
    # Only the new images: the pilot has been judged
    more = ask_free_judge(named, check.text, held.only(slice(n, None)), progress)
    return held, replace(said, answers=np.append(said.answers, more.answers))


def draw_images(check: LabelCheck, unit: CheckedUnit, pilot: HeldOut, progress: Progress) -> tuple[HeldOut, Floats]:
    """Return the images for a language model or people, and their weights, (drawn,).

    Raises Cancelled.
    """
    # Drawn once and kept: a resumed check must not pay for other images.
    if kept := check.kept.get("sample"):
        held = read_held_out(check, unit, progress, kept["images"])
        if len(held.positions) == kept["images"]:  # Fewer if the dataset has changed
            return held.only(np.array(kept["places"], np.int64)), np.array(kept["weights"], np.float64)
    held, guess = _guess_presence(check, unit, pilot, progress)
    seed = int(str(check.options.get("seed") or 0))
    drawn = draw_strata(held.activations, guess, DRAWS, seed=seed)
    places, weights = drawn.positions.tolist(), drawn.weights.tolist()
    check.kept["sample"] = {"images": len(held.positions), "places": places, "weights": weights}
    check.save(update_fields=["kept"])
    return held.only(drawn.positions), drawn.weights


def _guess_presence(
    check: LabelCheck, unit: CheckedUnit, pilot: HeldOut, progress: Progress
) -> tuple[HeldOut, Floats | None]:
    """Return the images to draw from, and a free judge's answers; the pilot and None if there is no such judge."""
    named = str(check.options.get("guess") or "")
    if not named:
        return pilot, None
    try:
        held, said = judge_enough_images(check, unit, named, pilot, progress)
    except RequestError:  # It cannot read the label or its weights are missing: the guess is optional
        return pilot, None
    return held, said.answers
