"""The figures of an experiment as the agent reads them below its images: what was logged wrongly, means, the scale.

Counted here from the record, so that no program has to, and none can miscount. Called by `conversation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import mean, stdev

from workers.record.events import ExperimentEnded
from workers.record.experiments import LogEntry
from workers.record.figures import format_activation

MOST_ROWS = 20
MOST_MARKED = 5
MOST_TITLE = 100
ORDINARY_UNKNOWN = "what ordinary images of the dataset get is not known"
"""So it is where the index was published, or made by an older version."""
_NUMBERED = re.compile(r"[\s:,#(\[-]*\d+(?:\.\d+)?[)\]]?$")


def lines(result: ExperimentEnded) -> Iterator[str]:
    """All of it, a line each."""
    # The images whose logged activation is not what the system returned, by the numbers under which they are shown
    seen = enumerate((each for entry in result.entries for each in entry.observations), 1)
    wrong = [(number, each) for number, each in seen if each.differs and each.claimed is not None]
    for number, each in wrong[:MOST_MARKED]:
        claimed, measured = format_activation(each.claimed or 0.0), format_activation(each.activation)
        yield f"Image {number} was logged with {claimed}; the system returns {measured} for it, and that is recorded."
    if len(wrong) > MOST_MARKED:
        yield f"So it is with {len(wrong) - MOST_MARKED} more. Log the activations that system.neuron returned."
    yield from table(result.entries)
    yield from scale(result)


def table(entries: Sequence[LogEntry]) -> Iterator[str]:
    """Mean and spread of the images whose titles are alike but for a number at the end, each image counted once."""
    groups: dict[str, dict[str, float]] = {}
    for each in (each for entry in entries for each in entry.observations):
        # The title without the number at its end, in one line
        title = " ".join(each.title.split())[:MOST_TITLE]
        groups.setdefault(_NUMBERED.sub("", title) or title or "untitled", {})[each.image] = each.activation
    several = [(title, list(found.values())) for title, found in groups.items() if len(found) > 1]
    if several or len(groups) > 1:
        yield "Activations by title:"
    yield from (f"- {title}: {summary(values)}" for title, values in several[:MOST_ROWS])
    if len(several) > MOST_ROWS:
        yield f"- {len(several) - MOST_ROWS} more titles are left out here"
    if len(groups) > 1:
        every = {key: value for found in groups.values() for key, value in found.items()}
        yield f"- all images: {summary(list(every.values()))}"


def summary(values: Sequence[float]) -> str:
    """How many, their mean, their standard deviation."""
    spread = f", sd {format_activation(stdev(values))}" if len(values) > 1 else ""
    return f"n={len(values)}, mean {format_activation(mean(values))}{spread}"


def scale(result: ExperimentEnded) -> Iterator[str]:
    """What an activation of this unit is to be compared with."""
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
