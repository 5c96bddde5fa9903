"""The test of a label in words, the same for the agent, pages, terminal and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workers.record.events import Direction, Graded

_NAMES: Mapping[str, str] = {
    "generated_auc": "AUC of images drawn for it against neutral ones",
    "bright_positives": "share of the images drawn for it that reach half of the exemplars' mean",
    "described": "share of the brightest natural images that it describes",
    "pearson": "r over natural images",
    "auprc": "AUPRC over natural images",
}
"""Field of `Graded` -> name of the figure."""

_DIRECTIONS: Mapping[Direction, str] = {
    "": "",
    "too narrow": "Too narrow, or there is a second cause: it does not describe many images that activate the unit.",
    "too broad": "Too broad: it describes many images that do not activate the unit.",
    "elsewhere": "It describes something else: most of what it describes does not activate the unit, and most images "
    "that do are not described.",
    "not readable": "Its words cannot be tested.",
}


@dataclass(frozen=True)
class GradedFigure:
    """One figure of the test of a label."""

    name: str
    value: float
    needed: float | None
    """None for a figure that has no threshold."""
    note: str = ""

    @property
    def failed(self) -> bool:
        return self.needed is not None and self.value < self.needed

    def __str__(self) -> str:
        """Format as "r over natural images: 0.78, needs 0.80 (0.89 is reachable): too low"."""
        if self.needed is None:
            return f"{self.name}: {self.value:.2f}{self.note}"
        # What is too low by less than the rounding must not look as if it were enough
        # Two decimals as everywhere; four if they would make the two figures look alike
        digits = 2 if f"{self.value:.2f}" != f"{self.needed:.2f}" else 4
        threshold = f"needs {self.needed:.{digits}f}"
        return f"{self.name}: {self.value:.{digits}f}, {threshold}{self.note}{': too low' if self.failed else ''}"


def list_figures(grade: Graded) -> list[GradedFigure]:
    """Return the measured figures, those with a threshold first."""
    notes = {} if grade.reachable is None else {"pearson": f" ({grade.reachable:.2f} is reachable)"}
    found = [
        GradedFigure(words, getattr(grade, name), grade.needed.get(name), notes.get(name, ""))
        for name, words in _NAMES.items()
        if getattr(grade, name) is not None
    ]
    # Stable: within both groups the order of `_NAMES`
    return sorted(found, key=lambda each: each.needed is None)


def name_verdict(grade: Graded) -> str:
    """Return "passed", "failed", or "could not be tested"."""
    if grade.passed:
        return "passed"
    # Some readers are not shown the reason
    return "failed" if not grade.reason and grade.generated_auc is not None else "could not be tested"


def describe_direction(grade: Graded) -> str:
    """Return what is wrong with the label, in a sentence; "" if the test does not say."""
    return _DIRECTIONS[grade.direction]


def describe_rest(grade: Graded) -> str:
    """Say how many more tries the agent has, in a sentence."""
    if grade.left <= 0:
        return "This was the last time that a label is tested: your next conclusion ends the investigation."
    return f"You may try again: a label is tested {grade.left} more time{'' if grade.left == 1 else 's'}."


def summarise_grade(grade: Graded) -> dict[str, Any]:
    """Return the test as commands print it in JSON."""
    return {
        "round": grade.round,
        "label": grade.label,
        "verdict": name_verdict(grade),
        "figures": [
            {"name": each.name, "value": each.value, "needed": each.needed, "failed": each.failed}
            for each in list_figures(grade)
        ],
        "reachable": grade.reachable,
        "direction": grade.direction,
        "explanation": describe_direction(grade),
        "reading": grade.reading,
        "reason": grade.reason,
        "left": grade.left,
    }
