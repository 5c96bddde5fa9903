"""Compute the figures of an experiment that the agent reads below its images: wrongly logged values, means, the scale.

Called by `conversation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, stdev

from workers.record.events import ExperimentEnded
from workers.record.experiments import Observation
from workers.record.figures import format_activation

MAX_MARKED = 5
MAX_TITLE = 100
ORDINARY_UNKNOWN = "what ordinary images of the dataset get is not known"
"""Shown where the index was published, or made by an older version."""
_NUMBERED = re.compile(r"[\s:,#(\[-]*\d+(?:\.\d+)?[)\]]?$")


def lines(result: ExperimentEnded, earlier: Mapping[str, float]) -> Iterator[str]:
    """Return all figures, one a line. `earlier` holds the activations of images that were logged before, by key."""
    # Images whose logged activation is not what the system returned, by the numbers under which they are shown
    seen = enumerate(result.observations, 1)
    # A program that logs other values than the system returned would mislead the agent, so both are named.
    wrong = [(number, each) for number, each in seen if each.differs and each.claimed is not None]
    # A few are named, the rest is counted.
    for number, each in wrong[:MAX_MARKED]:
        claimed, measured = format_activation(each.claimed or 0.0), format_activation(each.activation)
        yield f"Image {number} was logged with {claimed}; the system returns {measured} for it, and that is recorded."
    if len(wrong) > MAX_MARKED:
        yield f"So it is with {len(wrong) - MAX_MARKED} more. Log the activations that system.neuron returned."
    yield from _summarize_edits(result.observations, earlier)
    yield from table(result.observations)
    yield from scale(result)


def _summarize_edits(observations: Sequence[Observation], earlier: Mapping[str, float]) -> Iterator[str]:
    """Return the mean change of each edit instruction, from each original to its own edit; each pair counts once."""
    known = {**earlier, **{each.image: each.activation for each in observations}}
    pairs: dict[str, dict[tuple[str, str], tuple[float, float] | None]] = {}
    for each in observations:
        if _is_edit(each):
            words, original = " ".join((each.prompt or each.title).split()), each.original or ""
            # None: the original was never logged, so there is nothing to compare.
            pair = (known[original], each.activation) if original in known else None
            # A dict keyed by original and edit, so that a pair that was logged twice counts once.
            pairs.setdefault(words, {})[original, each.image] = pair
    if pairs:
        yield "Edits, each against its own original:"
    for words, found in pairs.items():
        compared = [pair for pair in found.values() if pair]
        lacking = len(found) - len(compared)
        told = [change(compared)] if compared else []
        told += [f"{lacking} not compared, since the original was never logged"] if lacking else []
        yield f"- {words[:MAX_TITLE]}: {'; '.join(told)}"


def change(pairs: Sequence[tuple[float, float]]) -> str:
    """Return the number of pairs, and the mean change with its standard deviation, between the means before and
    after.
    """
    changes = [after - before for before, after in pairs]
    before, after = (format_activation(mean(side)) for side in zip(*pairs, strict=True))
    name, spread = "change", ""
    # One pair has no spread.
    if len(pairs) > 1:
        name, spread = "mean change", f", sd {format_activation(stdev(changes))}"
    return f"n={len(pairs)}, {name} {_format_signed(mean(changes))}{spread} (from {before} to {after})"


def table(observations: Sequence[Observation]) -> Iterator[str]:
    """Return mean and spread of images whose titles differ only in a number at the end."""
    groups: dict[str, dict[str, float]] = {}
    # Edits are not groups to compare without their originals.
    for each in (each for each in observations if not _is_edit(each)):
        # The title without the number at its end, on one line
        title = " ".join(each.title.split())[:MAX_TITLE]
        # A dictionary by image, so that one that was logged twice counts once.
        groups.setdefault(_NUMBERED.sub("", title) or title or "untitled", {})[each.image] = each.activation
    several = [(title, list(found.values())) for title, found in groups.items() if len(found) > 1]
    if several or len(groups) > 1:
        yield "Activations by title:"
    yield from (f"- {title}: {summary(values)}" for title, values in several)
    if len(groups) > 1:
        every = {key: value for found in groups.values() for key, value in found.items()}
        but_edits = " but edits" if any(map(_is_edit, observations)) else ""
        yield f"- all images{but_edits}: {summary(list(every.values()))}"


def summary(values: Sequence[float]) -> str:
    """Return number, mean and standard deviation."""
    spread = f", sd {format_activation(stdev(values))}" if len(values) > 1 else ""
    return f"n={len(values)}, mean {format_activation(mean(values))}{spread}"


def scale(result: ExperimentEnded) -> Iterator[str]:
    """Return what an activation of this unit is to be compared with."""
    if ordinary := result.ordinary:
        median, high, top = (format_activation(each) for each in (ordinary.median, ordinary.q90, ordinary.q99))
        yield (
            f"Ordinary images of the dataset (n={ordinary.images}): median {median}, 0.9 quantile {high}, "
            f"0.99 quantile {top}"
        )
    elif result.exemplar_mean is not None:
        yield f"{ORDINARY_UNKNOWN.capitalize()}."
    if result.exemplar_mean is not None:
        yield f"Mean exemplar activation: {format_activation(result.exemplar_mean)}"
    if result.best is not None:
        short = 0.0 if result.exemplar_mean is None else result.exemplar_mean - result.best
        lacks = f", {format_activation(short)} below that mean" if short > 0 else ""
        yield f"Best activation measured in this run, exemplars aside: {format_activation(result.best)}{lacks}"


def _is_edit(observation: Observation) -> bool:
    return bool(observation.original) and observation.original != observation.image


def _format_signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{format_activation(value)}"
