"""Functions whose code is known: the score of a run that ends; how many functions the scripted baselines find out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from experiments.models import Run
from workers.functions.baselines import study_numbers, study_texts
from workers.functions.black_box import BlackBox
from workers.functions.families import open_function
from workers.functions.scoring import score_answer, summarise_scores
from workers.jobs.laboratory import sandbox
from workers.protocols import Progress
from workers.record.events import Ended, Payload
from workers.record.functions import FunctionScore
from workers.record.tasks import FUNCTION

_SCORED_ENDS = ("concluded", "limit_reached")
"""Kinds of ends after which no run goes on; the others would tell the truth too early."""
_STUDIES = {"numeric": study_numbers, "strings": study_texts}


def score_end(run: Run, kind: str, payload: Payload) -> Payload:
    """The end of a run on a function with the score of its conclusion; any other payload as it is."""
    if run.system_kind != FUNCTION or kind not in _SCORED_ENDS or not isinstance(payload, Ended):
        return payload
    box = open_function(f"{run.layer}:{run.unit}")
    return replace(payload, score=score_answer(box, payload.conclusion.code, sandbox()))


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


def _study(box: BlackBox) -> tuple[BlackBox, FunctionScore]:
    numbers: Iterator[int] = iter(range(1, 1_000_000))
    answer = _STUDIES[box.family](lambda inputs, _=None: box.call(inputs, next(numbers)))
    return box, score_answer(box, answer.code, sandbox())


def _describe(box: BlackBox, score: FunctionScore) -> dict[str, Any]:
    found = {name: getattr(score, name) for name in ("key", "outcome", "error", "right", "why")}
    return {**found, "atoms": box.truth.atoms, "variant": box.truth.variant}
