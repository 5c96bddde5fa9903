"""Which natural images a judge is asked about: as many as a free one can take, or a weighted sample.

A language model costs money and people their time, so they are asked about few images. These are drawn by strata, with
the help of a free judge that guesses what the label describes (`workers.metrics.strata`).
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
"""Natural images that a language model or people judge (2506.07985, "Beyond Top Activations", asks about as many)."""


def ask_free_judge(named: str, label: str, held: HeldOut, progress: Progress) -> JudgeAnswers:
    """What a plug-in says of all these images. Raises RequestError if it cannot test the label, and MissingPart."""
    judge = laboratory().presence_judge(named)
    answers = judge_images(judge, label, held.split.images, held.positions.tolist(), progress)
    return JudgeAnswers(registry.label(registry.PRESENCE_JUDGES, named), answers, exact=judge.kind == "exact")


def judge_enough_images(
    check: LabelCheck, unit: CheckedUnit, named: str, pilot: HeldOut, progress: Progress
) -> tuple[HeldOut, JudgeAnswers]:
    """The pilot, and more images where the label describes too few of it, with what a plug-in says of them.

    A label that a run tries is tried on the pilot alone. Raises as `ask_free_judge` does, and Cancelled.
    """
    said, n = ask_free_judge(named, check.text, pilot, progress), len(pilot.positions)
    count = plan_images(int((said.answers >= PRESENT).sum()), n)
    if check.split == DEVELOPMENT or count <= n or not np.isfinite(said.answers).any():
        return pilot, said
    held = read_held_out(check, unit, progress, count)
    if len(held.positions) == n:
        return pilot, said
    more = ask_free_judge(named, check.text, held.only(slice(n, None)), progress)
    return held, replace(said, answers=np.append(said.answers, more.answers))


def draw_images(check: LabelCheck, unit: CheckedUnit, pilot: HeldOut, progress: Progress) -> tuple[HeldOut, Floats]:
    """The images that a language model or people are asked about, and the weight of each, (drawn,).

    They are drawn once and kept with the check, since a check that is resumed must not pay for others. Raises
    Cancelled.
    """
    if kept := check.kept.get("sample"):
        held = read_held_out(check, unit, progress, kept["images"])
        if len(held.positions) == kept["images"]:  # fewer if the dataset has changed
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
    """The images to draw from, and what a free judge says of them: the pilot and None without one that can."""
    named = str(check.options.get("guess") or "")
    if not named:
        return pilot, None
    try:
        held, said = judge_enough_images(check, unit, named, pilot, progress)
    except RequestError:  # it cannot read the label, or its weights are not here: the check does without
        return pilot, None
    return held, said.answers
