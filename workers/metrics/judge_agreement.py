"""Agreement of people who judged the same image: the share of equal pairs of answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from workers.metrics.intervals import estimate_share
from workers.record.estimates import Estimate


def measure_agreement(said: Sequence[Sequence[str]]) -> Estimate:
    """Return the share of equal pairs of answers, averaged over images. `said` holds the answers of different people
    per image.

    Images with fewer than two answers are left out; `n` counts the others. Wilson's interval is over images, because
    pairs of one image are not independent.
    """
    shares = [_share_equal(answers) for answers in said if len(answers) > 1]
    if not shares:
        return Estimate(why="no image was judged by two people")
    return estimate_share(sum(shares), len(shares))


def _share_equal(answers: Sequence[str]) -> float:
    pairs = len(answers) * (len(answers) - 1)
    return sum(count * (count - 1) for count in Counter(answers).values()) / pairs
