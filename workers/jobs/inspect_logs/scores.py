"""Convert labels and figures to Inspect's scores. The label is an `answer`; each figure is a separate value, so that
Inspect computes means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.models import LabelCheck, Run
from workers.jobs.inspect_logs.pieces import Json
from workers.record.evaluations import Figure
from workers.record.events import Graded
from workers.record.replies import Conclusion

LABEL = "label"
INTERVALS = {
    "pearson": ("pearson_low", "pearson_high", "p_value"),
    "auprc": ("auprc_low", "auprc_high", "base_rate"),
    "generated_auc": (),
}
"""Figures of a label check, and the fields shown with each."""
GRADE = ("pearson", "auprc", "generated_auc", "bright_positives", "described")
LIMITS = {"rounds": "custom", "tokens": "token", "US dollars": "cost", "seconds": "working"}
"""Words in the sentence about a reached limit -> Inspect's name of the limit."""


def build_scores(run: Run) -> dict[str, Json]:
    """Return a run's conclusion and the scores of its label."""
    found: dict[str, Json] = {}
    if any(run.conclusion.values()):
        # Conclusions of newer versions may have more fields.
        known = {name: each for name, each in run.conclusion.items() if name in Conclusion.__dataclass_fields__}
        found[LABEL] = build_conclusion(Conclusion(**{**known, "labels": tuple(known.get("labels") or ())}))
    if run.label_check:
        found |= _build_check(run.label_check)
    if run.score:
        found |= build_values({f"function_{name}": run.score.get(name) for name in ("success", "error", "right")})
    return found


def build_conclusion(conclusion: Conclusion) -> Json:
    told = {name: getattr(conclusion, name) for name in ("description", "reasoning", "bias", "domain", "code")}
    return {
        "value": conclusion.labels[0] if conclusion.labels else "",
        "answer": "; ".join(conclusion.labels),
        "explanation": conclusion.description or conclusion.reasoning,
        "metadata": {"labels": list(conclusion.labels)} | {name: text for name, text in told.items() if text},
    }


def _build_check(check: LabelCheck) -> dict[str, Json]:
    """Return the measured figures of a check, each with its interval."""
    found = {}
    for name, beside in INTERVALS.items():
        if _is_value(value := getattr(check, name)):
            told = {each: getattr(check, each) for each in (*beside, "dataset", "split")}
            found[name] = {"value": value, "answer": check.text, "metadata": told}
    return found


def build_grade(grade: Graded) -> Json:
    """Return the score of a label that was tried during a run."""
    figures = {name: value for name in GRADE if _is_value(value := getattr(grade, name))}
    return {"value": {"passed": grade.passed, **figures}, "answer": grade.label, "explanation": grade.reason}


def build_values(values: Mapping[str, Any], answer: str = "") -> dict[str, Json]:
    """Return scores that are a number, a text or a boolean each. Missing ones are left out."""
    beside = {"answer": answer} if answer else {}
    return {name: {"value": value, **beside} for name, value in values.items() if _is_value(value)}


def limit_type(reason: str) -> str:
    """Return which limit a sentence of `record.limits` names."""
    first = reason.partition(" is reached")[0]
    return next((kind for word, kind in LIMITS.items() if word in first), "custom")


def _is_value(value: Any) -> bool:
    # NaN is no JSON.
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


@dataclass
class Means:
    """Mean and standard error of each figure over samples, collected while samples are written."""

    samples: int = 0
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, found: Mapping[str, Json]) -> None:
        self.samples += 1
        for name, score in found.items():
            value = score["value"]
            numbers = self.values.setdefault(name, [])
            if isinstance(value, int | float):
                numbers.append(float(value))

    def scores(self) -> list[Json]:
        """Return each figure as an `EvalScore`."""
        return [
            {
                "name": name,
                "scorer": name,
                "scored_samples": len(numbers),
                "unscored_samples": self.samples - len(numbers),
                "metrics": _metrics({"mean": _mean(numbers), "stderr": _standard_error(numbers)}),
            }
            for name, numbers in self.values.items()
            if numbers
        ]


def build_figures(figures: Iterable[Figure], kind: str) -> list[Json]:
    """Return figures of an evaluation as `EvalScore`s: value and ends of the 95 % interval as metrics."""
    return [
        {
            "name": figure.key,
            "scorer": kind,
            "scored_samples": figure.n,
            "metrics": _metrics({"value": figure.value, "low": figure.low, "high": figure.high}),
            "metadata": {"label": figure.label, "n": figure.n, "goal": figure.goal, "note": figure.note},
        }
        for figure in figures
        if _is_value(figure.value)
    ]


def _metrics(values: Mapping[str, float | None]) -> dict[str, Json]:
    return {name: {"name": name, "value": value} for name, value in values.items() if _is_value(value)}


def _mean(numbers: list[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def _standard_error(numbers: list[float]) -> float | None:
    """Return the standard error of the mean: sample deviation over root of n. None for a single number."""
    if len(numbers) < 2:
        return None
    mean = _mean(numbers)
    return math.sqrt(math.fsum((each - mean) ** 2 for each in numbers) / (len(numbers) - 1) / len(numbers))
