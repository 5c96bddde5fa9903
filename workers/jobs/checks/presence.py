"""Who says whether an image shows what the label says: a plug-in that knows or sees, a backbone that looks, or people.

A plug-in is asked of all images. A backbone costs money and people their time, so they are asked of a sample, drawn
where answers decide the correlation (2506.07985) and weighted back; each answer is kept at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.core.label_checks import BACKBONE, PEOPLE
from experiments.models import LabelCheck
from workers import registry
from workers.jobs.checks.answers import Floats, JudgeAnswers
from workers.jobs.checks.looking import look
from workers.jobs.checks.people import read_answers
from workers.jobs.laboratory import laboratory
from workers.lab.imaging import placeholder
from workers.lab.probe import ProbeSet
from workers.protocols import Picture, Progress

AT_ONCE = 64
"""Pictures that are in memory for a judge that looks."""
NOBODY = (
    "Nobody here can say what natural images show: no judge is set (MAIA_PRESENCE_JUDGE), and no backbone that sees "
    "was named. Choose one, or have people judge the images."
)


def judge_presence(
    check: LabelCheck,
    label: str,
    probe: ProbeSet,
    positions: NDArray[np.int64],
    activations: Floats,
    progress: Progress,
) -> JudgeAnswers:
    """Ask the check's judge about a label. Raises RequestError if the label has no content that can be tested."""
    named = str(check.options.get("judge") or "")
    if not named:
        return JudgeAnswers("", np.full(len(positions), np.nan), problem=NOBODY)
    if named == PEOPLE:
        return read_answers(check, positions)
    if named == BACKBONE:
        return look(check, label, probe, positions, activations, progress)
    judge = laboratory().presence_judge(named)
    exact = judge.kind == "exact"
    if exact:
        said = judge.judge(label, [_scene(probe, int(at)) for at in positions], progress)
    else:
        parts = (positions[start : start + AT_ONCE] for start in range(0, len(positions), AT_ONCE))
        said = [
            each for part in parts for each in judge.judge(label, [probe.picture(int(at)) for at in part], progress)
        ]
    answers = np.array([np.nan if each is None else each for each in said], dtype=np.float64)
    return JudgeAnswers(registry.label(registry.PRESENCE_JUDGES, named), answers, exact=exact)


def _scene(probe: ProbeSet, position: int) -> Picture:
    """The scene behind an image, without drawing it: all that an exact judge reads."""
    return Picture(placeholder(), probe.scene(position))
