"""How often a judge of presence errs, on images of which the truth is known. Stands beside every figure it gives."""

from __future__ import annotations

from collections.abc import Sequence

from workers.metrics.intervals import estimate_share
from workers.record.label_checks import JudgeError

PRESENT = 0.5
"""A probability from which on an answer counts as "it is there"."""


def measure_judge_error(answers: Sequence[float | None], truths: Sequence[bool]) -> JudgeError:
    """Shares of absent images called present and of present ones called absent, with Wilson intervals.

    Answers are probabilities in [0, 1], None where none could be read: these are counted apart, in neither share;
    `n` is the images with an answer. Raises ValueError for unequal lengths.
    """
    known = [(said >= PRESENT, true) for said, true in zip(answers, truths, strict=True) if said is not None]
    called = {wanted: [said for said, true in known if true is wanted] for wanted in (False, True)}
    return JudgeError(
        n=len(known),
        false_positives=estimate_share(sum(called[False]), len(called[False])),
        false_negatives=estimate_share(sum(not said for said in called[True]), len(called[True])),
        unread=len(answers) - len(known),
    )
