"""Who says whether an image shows what the label says: a plug-in that knows or sees, a backbone that looks, or people.

A plug-in is asked of all images. A backbone costs money and people their time, so they are asked of a sample, drawn
where answers decide the correlation (2506.07985) and weighted back; each answer is kept at once.
"""

from __future__ import annotations

import numpy as np

from experiments.core.label_checks import BACKBONE, PEOPLE
from experiments.models import LabelCheck
from workers import registry
from workers.jobs.checks.answers import JudgeAnswers
from workers.jobs.checks.held_out import HeldOut
from workers.jobs.checks.looking import look
from workers.jobs.checks.people import read_answers
from workers.jobs.laboratory import laboratory
from workers.lab.presence import judge_images
from workers.protocols import Progress

NOBODY = (
    "Nobody here can say what natural images show: no judge is set (MAIA_PRESENCE_JUDGE), and no backbone that sees "
    "was named. Choose one, or have people judge the images."
)


def judge_presence(check: LabelCheck, label: str, held: HeldOut, progress: Progress) -> JudgeAnswers:
    """Ask the check's judge about a label. Raises RequestError if the label has no content that can be tested."""
    named = str(check.options.get("judge") or "")
    if not named:
        return JudgeAnswers("", np.full(len(held.positions), np.nan), problem=NOBODY)
    if named == PEOPLE:
        return read_answers(check, held.positions)
    if named == BACKBONE:
        return look(check, label, held, progress)
    judge = laboratory().presence_judge(named)
    answers = judge_images(judge, label, held.split.images, held.positions.tolist(), progress)
    return JudgeAnswers(registry.label(registry.PRESENCE_JUDGES, named), answers, exact=judge.kind == "exact")
