"""Functions whose code is known: score a run at its end, and measure the scripted baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from django.conf import settings

from experiments.core.compatibility import FUNCTIONS
from experiments.models import Run
from workers.errors import RequestError
from workers.functions.baselines import STUDIES, FunctionAnswer
from workers.functions.black_box import BlackBox, FunctionModel, JudgedBox
from workers.functions.scoring import judge_description, score_answer, summarise_scores
from workers.functions.words.triplets import (
    CHANCE,
    TRIPLETS,
    NearnessJudge,
    Triplet,
    TripletJudge,
    ask_to_pick,
    parse_pick,
)
from workers.jobs.label_checks.vlm_request import ask, find_backbone
from workers.jobs.laboratory import laboratory, sandbox
from workers.metrics.intervals import estimate_mean
from workers.protocols import Backbone, Progress, no_progress
from workers.record.events import Ended, Payload
from workers.record.functions import WORD_FAMILIES, FunctionScore, to_json
from workers.record.limits import Usage
from workers.record.replies import Conclusion
from workers.record.tasks import FUNCTION
from workers.sentences import Nearness, load_sentences

_SCORED_ENDS = ("concluded", "limit_reached")
"""Ends after which a run cannot be resumed. After others, the score would reveal the truth too early."""
_SAYS_NOTHING = "It does something with words."


def score_end(run: Run, kind: str, payload: Payload) -> Payload:
    """Add the score of the conclusion to the end of a run on a function. Return any other payload unchanged."""
    if run.system_kind != FUNCTION or kind not in _SCORED_ENDS or not isinstance(payload, Ended):
        return payload
    return replace(payload, score=score(open_box(run.model, run.layer, run.unit), payload.conclusion))


def _find_nearness() -> Nearness:
    # Loaded on first use: only functions of words need it.
    return load_sentences(settings.LAB_SENTENCES)


def open_box(model: str, layer: str, number: int) -> BlackBox:
    """Return a function of a model. Raises UnknownName, MissingPart."""
    return cast("FunctionModel", laboratory().model(model)).open(layer, number)


def list_hints(run: Run) -> str:
    """Return the outputs of the run's function for its hints, one per line. Raises UnknownName, MissingPart."""
    pairs = call_hints(open_box(run.model, run.layer, run.unit))
    return "\n".join(f"{place}. {to_json(given)} → {to_json(said)}" for place, (given, said) in enumerate(pairs, 1))


def call_hints(box: BlackBox) -> list[tuple[Any, Any]]:
    """Return each hint with its output."""
    hints = box.draw_hints()
    return list(zip(hints, box.call(hints), strict=True))


def score(box: BlackBox, answer: Conclusion | FunctionAnswer, judge: TripletJudge | None = None) -> FunctionScore:
    """Score a function of words by the description, with nearness in meaning as default judge; any other by its
    code."""
    if box.family in WORD_FAMILIES:
        return judge_answer(box, answer, judge or NearnessJudge(_find_nearness))
    return score_answer(box, answer.code, sandbox())


@dataclass
class ModelJudge:
    """A language model that chooses by a description. `cost` sums up its US dollars."""

    backbone: Backbone
    cost: float = 0.0

    @property
    def label(self) -> str:
        return self.backbone.label

    def pick(self, description: str, triplet: Triplet, question: str) -> int | None:
        def spend(usage: Usage) -> None:
            self.cost += usage.cost

        return ask(self.backbone, ask_to_pick(description, triplet, question), parse_pick, spend, no_progress)


def judge_answer(box: BlackBox, answer: Conclusion | FunctionAnswer, judge: TripletJudge) -> FunctionScore:
    """Score by the description of a function of words or texts."""
    return judge_description(cast("JudgedBox", box), answer.description, judge)


def find_judge(written: str) -> ModelJudge:
    """Return the language model written as "openai:gpt-4o". Raises MissingPart, UnknownName."""
    key, _, model = written.partition(":")
    return ModelJudge(find_backbone(key, model, sees=False, unpriced=False))


def measure_baseline(
    family: str, seeds: list[int], count: int, progress: Progress, judge: TripletJudge | None = None
) -> dict[str, Any]:
    """Let the family's scripted baseline find out `count` functions of each seed, and score its answers.

    Functions of a seed are numbered from 1,000,000 · (seed + 1). Returns shares of successes by common properties and
    a line
    per failure; for functions of words also right choices by the baseline's description, by the true one (the
    ceiling) and
    by an empty one. An exception in `progress` stops it.
    """
    # Beyond all listed functions, so that no run has seen them
    numbers = [1_000_000 * (seed + 1) + number for seed in seeds for number in range(count)]
    return {"seeds": seeds} | measure_functions(FUNCTIONS, family, numbers, progress, judge)


def measure_functions(
    model: str, family: str, numbers: Sequence[int], progress: Progress, judge: TripletJudge | None = None
) -> dict[str, Any]:
    """Measure the baseline on these functions of a model. Raises RequestError if there are none."""
    if not numbers:
        raise RequestError(f"{model} has no {family} function that can be run. Choose another family.")
    scored, floors = [], []
    for done, number in enumerate(numbers):
        progress(f"Finding out {family}:{number}", done, len(numbers))
        scored.append(_study(open_box(model, family, number), judge))
        if family in WORD_FAMILIES:
            # What a judge's guesses reach by a description that says nothing.
            floors.append(score(scored[-1][0], FunctionAnswer(_SAYS_NOTHING, "", ""), judge))
    progress(f"Finding out {family} functions", len(numbers), len(numbers))
    return {
        "family": family,
        "model": model,
        "baseline": "scripted baseline",
        "functions": len(numbers),
        "shares": {name: asdict(share) for name, share in summarise_scores(scored).items()},
        "failures": [_describe(box, found) for box, found in scored if not found.success],
        **({"choices": _summarise_choices([found for _, found in scored], floors)} if floors else {}),
        "cost": judge.cost if isinstance(judge, ModelJudge) else 0.0,
    }


def _study(box: BlackBox, judge: TripletJudge | None) -> tuple[BlackBox, FunctionScore]:
    # Each call is a separate experiment, because noise is drawn by the experiment's number
    numbers: Iterator[int] = iter(range(1, 1_000_000))
    answer = STUDIES[box.family](lambda inputs, _=None: box.call(inputs, next(numbers)))
    return box, score(box, answer, judge)


def _summarise_choices(found: Sequence[FunctionScore], floors: Sequence[FunctionScore]) -> dict[str, Any]:
    """Return mean shares of right choices with intervals over functions, and the number of unreadable answers."""
    right = {
        "baseline": [each.right for each in found],
        "true description": [each.ceiling for each in found],
        "a description that says nothing": [each.right for each in floors],
    }
    return {
        "judge": found[0].judge,
        "chance": CHANCE,
        "choices": len(found) * TRIPLETS,
        "unread": sum(not choice.answer for each in found for choice in each.inputs),
        "right": {name: asdict(estimate_mean(_find_shares(counts))) for name, counts in right.items()},
    }


def _find_shares(counts: Sequence[int | None]) -> list[float]:
    return [(count or 0) / TRIPLETS for count in counts]


def _describe(box: BlackBox, scored: FunctionScore) -> dict[str, Any]:
    found = {name: getattr(scored, name) for name in ("key", "outcome", "error", "right", "why")}
    return {**found, "atoms": box.truth.atoms, "variant": box.truth.variant}
