"""Functions whose code is known: how many of them the scripted baselines find out. For the command `functions`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from workers.functions.baselines import study_numbers, study_texts
from workers.functions.black_box import BlackBox
from workers.functions.families import open_function
from workers.functions.scoring import Score, score_answer, summarise_scores
from workers.jobs.laboratory import sandbox
from workers.protocols import Progress

_STUDIES = {"numeric": study_numbers, "strings": study_texts}


def measure_baseline(family: str, seeds: list[int], count: int, progress: Progress) -> dict[str, Any]:
    """Have the family's scripted baseline find out `count` functions of each seed, and score its answers.

    Functions of a seed are those numbered from 1,000,000 · (seed + 1) on, which nothing offers by itself. Returns
    shares of successes by what functions have in common, and a line for each failure. What `progress` raises stops it.
    """
    keys = [f"{family}:{1_000_000 * (seed + 1) + number}" for seed in seeds for number in range(count)]
    scored = []
    for done, key in enumerate(keys):
        progress(f"Finding out {key}", done, len(keys))
        scored.append(_study(open_function(key)))
    progress(f"Finding out {family} functions", len(keys), len(keys))
    return {
        "family": family,
        "baseline": "scripted baseline",
        "seeds": seeds,
        "functions": len(keys),
        "shares": {name: asdict(share) for name, share in summarise_scores(scored).items()},
        "failures": [_describe(box, score) for box, score in scored if not score.success],
    }


def _study(box: BlackBox) -> tuple[BlackBox, Score]:
    numbers: Iterator[int] = iter(range(1, 1_000_000))
    answer = _STUDIES[box.family](lambda inputs: box.call(inputs, next(numbers)))
    return box, score_answer(box, answer.code, sandbox())


def _describe(box: BlackBox, score: Score) -> dict[str, Any]:
    return {**asdict(score), "error": str(score.error), "atoms": box.truth.atoms, "variant": box.truth.variant}
