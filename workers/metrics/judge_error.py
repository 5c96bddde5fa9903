"""How often a judge of presence errs, on images of which the truth is known, and how far people agree on an image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from workers.metrics.intervals import estimate_share
from workers.record.estimates import Estimate
from workers.record.label_checks import JudgeError

PRESENT = 0.5
"""Answers from this probability on count as present."""


def measure_judge_error(answers: Sequence[float | None], truths: Sequence[bool]) -> JudgeError:
    """Return the shares of absent images called present and of present images called absent, with Wilson intervals.

    Answers are probabilities in [0, 1], None if unreadable. Unreadable answers are counted separately and are in
    neither share; `n` counts the others. Raises ValueError for unequal lengths.
    """
    # Unreadable answers are neither: a wrong answer is another fault than none.
    known = [(said >= PRESENT, true) for said, true in zip(answers, truths, strict=True) if said is not None]
    called = {wanted: [said for said, true in known if true is wanted] for wanted in (False, True)}
    return JudgeError(
        n=len(known),
        false_positives=estimate_share(sum(called[False]), len(called[False])),
        false_negatives=estimate_share(sum(not said for said in called[True]), len(called[True])),
        unread=len(answers) - len(known),
    )


def measure_agreement(said: Sequence[Sequence[str]]) -> Estimate:
    """Return the share of equal pairs of answers, averaged over images; `said` has the answers of different people for
    each.

    Images with fewer than two answers are left out; `n` counts the others.
    """
    # One answer agrees with nothing.
    shares = [_share_equal(answers) for answers in said if len(answers) > 1]
    if not shares:
        return Estimate(why="no image was judged by two people")
    # Wilson's interval over images, since the pairs of one image are not independent.
    return estimate_share(sum(shares), len(shares))


def _share_equal(answers: Sequence[str]) -> float:
    pairs = len(answers) * (len(answers) - 1)
    return sum(count * (count - 1) for count in Counter(answers).values()) / pairs
