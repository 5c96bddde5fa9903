"""What is asked of a causal check, and what it found: units of a layer are changed, and the model's own output changes.

Plain JSON both ways. The formula of the change is in `workers.causal.rewrites`.
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
"""Units of one set."""
MAX_FACTOR = 10.0
MAX_LISTED = 8
"""Classes listed in each direction."""


@dataclass(frozen=True)
class CausalQuestion:
    """Which units of a layer are changed, and how: `factor` times their distance from the reference."""

    units: tuple[int, ...]
    """Ascending, each once."""
    factor: float = 0.0
    """0 ablates, 2 doubles."""
    reference: str = "zero"
    """One of `REFERENCES`. "mean": that of the unit over all places of the images."""
    seed: int = 0
    """Of the draw of control units."""


def find_problem(question: CausalQuestion, units: int) -> tuple[str, str] | None:
    """The field that is wrong and a sentence that says why; None for a question that a layer of `units` can answer."""
    asked = question.units
    if not asked:
        return "units", "No unit is named. Name at least one."
    if len(asked) > MAX_UNITS:
        return "units", f"{len(asked):,} units are too many for one set. Name at most {MAX_UNITS:,}."
    if list(asked) != sorted(set(asked)):
        return "units", "Name each unit once, in ascending order."
    if wrong := [unit for unit in asked if not 0 <= unit < units]:
        return "units", f"There is no unit {wrong[0]} in this layer. Name units from 0 to {units - 1:,}."
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
    """What becomes of one class."""

    number: int
    name: str
    change: Estimate
    """Mean over images of the change of its logit."""
    probability: Estimate
    """The same of its probability."""
    control: float | None
    """Mean change of its logit over the draws of control units; None without any."""
    adjusted_p: float | None
    """Wilcoxon's signed-rank test of the logit, adjusted for all classes (Benjamini and Hochberg)."""
    direction: Literal["falls", "rises", ""]
    """"" unless the adjusted p-value is at most .05 and the 95 % interval excludes 0."""


@dataclass(frozen=True)
class ControlEffect:
    """The same change of as many other units, drawn at random a few times: a figure for each draw."""

    divergences: tuple[float, ...] = ()
    """Means over images."""
    same: tuple[float, ...] = ()
    """Shares of images; empty for models without classes."""
    why: str = ""
    """Why there are no draws; "" if there are."""


@dataclass(frozen=True)
class ImageEffect:
    """What the change does over some images. The image is the case of the intervals."""

    images: int = 0
    divergence: Estimate = NONE
    """Mean over images, as `CausalReport.measure` says; 0 where nothing changes."""
    same: Estimate = NONE
    """Share of images whose answer stays: the class on top, or all classes above .5. None without classes."""
    tested: int = 0
    """Classes."""
    falling: int = 0
    rising: int = 0
    classes: tuple[ClassChange, ...] = ()
    """Those whose logits change most, ascending by change."""
    control: ControlEffect = ControlEffect()


@dataclass(frozen=True)
class CausalReport:
    """What a causal check found."""

    measure: Literal["kl", "binary_kl", "change", ""] = ""
    """"kl": divergence of the probabilities of the classes from the model's own, in nats. "binary_kl": the same of each
    class by itself, summed. "change": for models without classes, squared change of the output over its variance among
    images. "" if nothing was measured."""
    everywhere: ImageEffect = ImageEffect()
    """Over all images."""
    most_active: ImageEffect = ImageEffect()
    """Over the tenth of the images that activate the units most."""
    active_images: int = 0
    """Images with an activation above 0 of at least one of the units."""
    constant: tuple[int, ...] = ()
    """Units whose activation is the same for all images, among them dead ones."""
    references: tuple[float, ...] = ()
    """Of each unit."""
    draws: tuple[tuple[int, ...], ...] = ()
    """Control units."""
    why: str = ""
    """Why nothing was measured; "" if it was."""


def read_causal_report(facts: Any) -> CausalReport:
    """A report from the plain JSON that it was stored as. Raises ValueError if it is none."""
    try:
        return msgspec.convert(facts, CausalReport)
    except msgspec.ValidationError as error:
        raise ValueError(f"This is no result of a causal check: {error}. Ask for the check again.") from None
