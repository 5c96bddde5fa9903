"""The error rate of a judge of presence on images with known truth. Shown beside every figure from that judge."""

from __future__ import annotations

from collections.abc import Sequence

from workers.metrics.intervals import estimate_share
from workers.record.label_checks import JudgeError

PRESENT = 0.5
"""Answers from this probability on count as present."""


def measure_judge_error(answers: Sequence[float | None], truths: Sequence[bool]) -> JudgeError:
    """Return the shares of absent images called present and of present images called absent, with Wilson intervals.

    Answers are probabilities in [0, 1], None if unreadable. Unreadable answers are counted separately and are in
    neither share; `n` counts the others. Raises ValueError for unequal lengths.
    """
    known = [(said >= PRESENT, true) for said, true in zip(answers, truths, strict=True) if said is not None]
    called = {wanted: [said for said, true in known if true is wanted] for wanted in (False, True)}
    return JudgeError(
        n=len(known),
        false_positives=estimate_share(sum(called[False]), len(called[False])),
        false_negatives=estimate_share(sum(not said for said in called[True]), len(called[True])),
        unread=len(answers) - len(known),
    )
