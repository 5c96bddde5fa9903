"""Check the figures that a conclusion cites against the run's records.

Only a few are recognised, but reliably: more images than were measured, a mean above everything measured, and
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from experiments.models import Run
from workers.record.figures import figure

COUNT = re.compile(r"\bn ?= ?(\d{1,7})\b|\b(\d{1,7}) images\b")
MEAN = re.compile(r"\bmean (?:activation )?(?:of |is |= ?)?(\d{1,6}\.\d{1,6})\b|\b(\d{1,6}\.\d{1,6}) on average\b")
CLAUSE = re.compile(r"[;\n]|[.!?](?:\s|$)")
NUMBERED = re.compile(r"[\s:,#(\[-]*\d+(?:\.\d+)?[)\]]?$")
SHORTEST = 6
"""Minimum characters of a title that cannot occur in a sentence by chance."""
READ = 20_000
"""Characters of a conclusion that are read."""

Group = list[tuple[int, str, float]]
"""Experiment, image and activation of the images with one title."""


@dataclass(frozen=True)
class Cited:
    """A figure as the conclusion cites it, and as recorded."""

    cited: str
    record: str
    agrees: bool


def recount(run: Run, conclusion: Mapping[str, Any]) -> list[Cited]:
    """Return the recognised figures, each once, in the order of the text."""
    texts = [str(conclusion.get(name) or "") for name in ("description", "bias", "reasoning")]
    clauses = [
        clause for clause in CLAUSE.split("\n".join(texts)[:READ]) if COUNT.search(clause) or MEAN.search(clause)
    ]
    # Most conclusions cite nothing that is recognised: no query then.
    if not clauses:
        return []
    rows = list(run.observations.order_by("pk").values_list("experiment_id", "image_id", "activation", "title"))
    groups: dict[str, Group] = {}
    for experiment, image, activation, title in rows:
        # "red ball 1" and "red ball 2" are one series of images.
        name = NUMBERED.sub("", " ".join(title.split())).casefold()
        groups.setdefault(name, []).append((experiment, image, activation))
    # Programs may measure images without logging them: those count too.
    measured = run.events.filter(kind="result").values_list("payload__measured", flat=True)
    images = max(len(rows), sum(each or 0 for each in measured))
    reached = [*(row[2] for row in rows), run.best_activation, run.exemplar_mean]
    highest = max((each for each in reached if each is not None), default=math.inf)
    # The same figure may be cited in several clauses.
    return list(dict.fromkeys(cited for clause in clauses for cited in _check(clause, groups, images, highest)))


def _check(clause: str, groups: Mapping[str, Group], images: int, highest: float) -> Iterator[Cited]:
    """Compare the figures of a clause with the record: number of images, and highest activation, infinite if there
    is none."""
    counts = [next(filter(None, found.groups())) for found in COUNT.finditer(clause)]
    means = [next(filter(None, found.groups())) for found in MEAN.finditer(clause)]
    # Of titles that contain each other, such as "dog" and "black dog", only the longest was meant.
    named = [name for name in groups if len(name) >= SHORTEST and name in clause.casefold()]
    longest = [name for name in named if not any(name != other and name in other for other in named)]
    for count in counts:
        if int(count) > images:
            yield Cited(f"n={count}", f"{images} images measured in all", False)
    # A rounded mean may exceed the highest value by less than its last digit.
    for each in means:
        if float(each) > highest + _unit(each):
            yield Cited(f"mean {each}", f"nothing measured above {figure(highest)}", False)
    # With two titles or two figures, it is unknown which figure belongs to which title.
    if len(longest) == 1 and len(groups[longest[0]]) > 1 and len(counts) <= 1 and len(means) <= 1:
        yield from _of_group(longest[0], groups[longest[0]], counts, means)


def _of_group(name: str, group: Group, counts: Sequence[str], means: Sequence[str]) -> Iterator[Cited]:
    """Compare the figures of a clause that names one title with the record of the run and of each experiment."""
    experiments = {experiment for experiment, _, _ in group}
    # The whole run first: its numbers are shown.
    parts = [group, *([each for each in group if each[0] == experiment] for experiment in sorted(experiments))]
    # An image that was logged twice counts once, with its last activation.
    values = [list({image: activation for _, image, activation in part}.values()) for part in parts]
    for count in counts:
        agrees = any(int(count) in {len(part), len(found)} for part, found in zip(parts, values, strict=True))
        yield Cited(f"n={count}", f"n={len(values[0])} under “{name}”", agrees)
    for each in means:
        # The agent may have meant one experiment or all of them, and counted images or rows: either is right.
        agrees = any((abs(float(each) - mean(found)) <= _unit(each)) for found in values)
        yield Cited(f"mean {each}", f"mean {figure(mean(values[0]))} under “{name}”", agrees)


def _unit(cited: str) -> float:
    """Return one unit in the last place that is written."""
    return float(10.0 ** -len(cited.partition(".")[2]))
