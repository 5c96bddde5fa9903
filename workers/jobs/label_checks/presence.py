"""Choose who judges whether images show what the label says: a plug-in, a backbone that sees images, or people."""

from __future__ import annotations

import numpy as np

from experiments.label_checks.requests import BACKBONE, PEOPLE
from experiments.models import LabelCheck
from workers.jobs.label_checks.held_out import HeldOut
from workers.jobs.label_checks.judge_answers import JudgeAnswers
from workers.jobs.label_checks.people import list_asked, read_answers
from workers.jobs.label_checks.sampling import draw_images, judge_enough_images
from workers.jobs.label_checks.subject import CheckedUnit
from workers.jobs.label_checks.vlm_judge import look
from workers.protocols import Progress

NOBODY = (
    "Natural images cannot be judged: no judge is set (MAIA_PRESENCE_JUDGE), and no backbone that sees images "
    "was chosen. Choose one, or let people judge the images."
)


def judge_presence(
    check: LabelCheck, unit: CheckedUnit, pilot: HeldOut, progress: Progress
) -> tuple[HeldOut, JudgeAnswers]:
    """Return the judged images and the answers: as many as needed for a plug-in, a weighted sample otherwise.

    Raises RequestError if the label has no testable content, Cancelled, and the errors of a backbone.
    """
    named = str(check.options.get("judge") or "")
    if not named:
        return pilot, JudgeAnswers("", np.full(len(pilot.positions), np.nan), problem=NOBODY)
    if named == PEOPLE:
        held = list_asked(check, unit, pilot, progress)
        return held, read_answers(check, held.positions)
    if named == BACKBONE:
        held, weights = draw_images(check, unit, pilot, progress)
        return held, look(check, check.text, held, weights, progress)
    return judge_enough_images(check, unit, named, pilot, progress)
