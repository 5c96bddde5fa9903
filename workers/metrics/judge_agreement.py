"""How far people who judged the same image agree: the share of pairs of answers that are equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from workers.metrics.intervals import estimate_share
from workers.record.estimates import Estimate


def measure_agreement(said: Sequence[Sequence[str]]) -> Estimate:
    """`said`: for each image the answers of different people. The share of equal pairs, averaged over images.

    Images with fewer than two answers are left out; `n` counts the others. The interval is Wilson's over images, since
    the pairs of one image are not independent.
    """
    shares = [_share_equal(answers) for answers in said if len(answers) > 1]
    if not shares:
        return Estimate(why="no image was judged by two people")
    return estimate_share(sum(shares), len(shares))


def _share_equal(answers: Sequence[str]) -> float:
    pairs = len(answers) * (len(answers) - 1)
    return sum(count * (count - 1) for count in Counter(answers).values()) / pairs
