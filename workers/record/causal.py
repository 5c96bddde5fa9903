"""Question and result of a causal check: units of a layer are changed, and the change of the model's output is
measured.

Converts to plain JSON and back. The formula of the change is in `workers.causal.rewrites`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import msgspec

from workers.record.estimates import NONE, Estimate

Reference = Literal["zero", "mean"]
REFERENCES: tuple[str, ...] = get_args(Reference)
MAX_UNITS = 1_000
"""Maximum number of units in one set."""
MAX_FACTOR = 10.0
MAX_LISTED = 8
"""Classes listed in each direction."""


@dataclass(frozen=True)
class CausalQuestion:
    """Which units of a layer are changed, and how: `factor` multiplies their distance from the reference."""

    units: tuple[int, ...]
    """Ascending and unique."""
    factor: float = 0.0
    """0 ablates, 2 doubles."""
    reference: str = "zero"
    """One of `REFERENCES`. "mean" is the unit's mean over all positions of the images."""
    seed: int = 0
    """Seed for drawing control units."""


def find_problem(question: CausalQuestion, units: int) -> tuple[str, str] | None:
    """Return the invalid field and a sentence that says why; None for a valid question about a layer of `units`
    units."""
    # In the order of the form: the first invalid field is reported
    asked = question.units
    if not asked:
        return "units", "No unit is named. Name at least one."
    if len(asked) > MAX_UNITS:
        return "units", f"{len(asked):,} units are too many for one set. Name at most {MAX_UNITS:,}."
    if list(asked) != sorted(set(asked)):
        return "units", "Name each unit once, in ascending order."
    if wrong := [unit for unit in asked if not 0 <= unit < units]:
        return "units", f"There is no unit {wrong[0]} in this layer. Name units from 0 to {units - 1:,}."
    # NaN and infinity are refused too
    if not (math.isfinite(question.factor) and 0 <= question.factor <= MAX_FACTOR):
        return "factor", f"The factor {question.factor:g} is out of range. Give a number from 0 to {MAX_FACTOR:g}."
    if question.factor == 1:
        return "factor", "The factor 1 changes nothing. Give 0 to ablate, 2 to double, or another number."
    if question.reference not in REFERENCES:
        return (
            "reference",
            f"There is no reference “{question.reference[:40]}”. Choose one of: {', '.join(REFERENCES)}.",
        )
    return None


@dataclass(frozen=True)
class ClassChange:
    """The change of one class."""

    number: int
    name: str
    change: Estimate
    """Mean change of its logit over images."""
    probability: Estimate
    """Mean change of its probability over images."""
    control: float | None
    """Mean change of its logit over the draws of control units; None without draws."""
    adjusted_p: float | None
    """p-value of Wilcoxon's signed-rank test of the logit, adjusted for all classes (Benjamini and Hochberg)."""
    direction: Literal["falls", "rises", ""]
    """Empty unless the adjusted p-value is at most .05 and the 95 % interval excludes 0."""


@dataclass(frozen=True)
class ControlEffect:
    """The effect of the same change on equally many random other units: one figure for each draw."""

    divergences: tuple[float, ...] = ()
    """Means over images."""
    same: tuple[float, ...] = ()
    """Shares of images; empty for models without classes."""
    why: str = ""
    """Why there are no draws; "" if there are."""


@dataclass(frozen=True)
class ImageEffect:
    """The effect over some images. Intervals are over images."""

    images: int = 0
    divergence: Estimate = NONE
    """Mean over images of `CausalReport.measure`; 0 means no change."""
    same: Estimate = NONE
    """Share of images with an unchanged answer: the top class, or all classes above .5. None without classes."""
    tested: int = 0
    """Number of classes tested."""
    falling: int = 0
    rising: int = 0
    classes: tuple[ClassChange, ...] = ()
    """The classes whose logits change most, ascending by change."""
    control: ControlEffect = ControlEffect()


@dataclass(frozen=True)
class CausalReport:
    """The result of a causal check."""

    measure: Literal["kl", "binary_kl", "change", ""] = ""
    """How the output is compared; "" if nothing was measured.

    "kl": divergence of the class probabilities from the model's own, in nats. "binary_kl": the same for each class
    separately, summed. "change", for models without classes: squared change of the output over its variance among
    images.
    """
    everywhere: ImageEffect = ImageEffect()
    """Over all images."""
    most_active: ImageEffect = ImageEffect()
    """Over the tenth of the images that activate the units most."""
    active_images: int = 0
    """Number of images on which at least one of the units has an activation above 0."""
    constant: tuple[int, ...] = ()
    """Units with the same activation on all images, such as dead units."""
    references: tuple[float, ...] = ()
    """Reference value of each unit."""
    draws: tuple[tuple[int, ...], ...] = ()
    """Control units of each draw."""
    why: str = ""
    """Why nothing was measured; "" if it was."""


def read_causal_report(facts: Any) -> CausalReport:
    """Parse a stored report. Raises ValueError if it is invalid."""
    try:
        # Stored facts may be of an older version, or imported
        return msgspec.convert(facts, CausalReport)
    except msgspec.ValidationError as error:
        raise ValueError(f"This is no result of a causal check: {error}. Ask for the check again.") from None
