"""Compare several runs side by side: question, configuration and results line by line, and their rounds by number.

Plain data for templates; changes nothing. The number of queries depends neither on the runs nor on their length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Max, Min

from experiments.core import parts
from experiments.core.system_names import SystemNameMasker
from experiments.display import rounds as run_rounds
from experiments.display import verdicts
from experiments.display.events import backbone_of
from experiments.display.image_cards import ImageCard
from experiments.display.number_format import compact, dollars, duration
from experiments.display.plots import Scale
from experiments.models import Event, Experiment, Observation, Run
from experiments.runs.page.experiments import Listed, list_experiments
from workers.record import tasks
from workers.record.events import Replied
from workers.record.figures import MINUS, figure
from workers.record.replies import Hypothesis

Json = Mapping[str, Any]
MIN_RUNS, MAX_RUNS = 2, 6
"""Runs side by side."""
ROUNDS = 8
"""Rounds on one page."""


@dataclass(frozen=True)
class ComparisonCell:
    """What a line says of one run; `difference` is how far its figure lies from the baseline's, with the sign."""

    run: Run
    value: Any
    text: str = ""
    difference: str = ""

    @property
    def in_words(self) -> str:
        if self.text or self.value is None:
            return self.text
        listed = isinstance(self.value, list | tuple)
        return ", ".join(str(each) for each in self.value if each) if listed else str(self.value)


@dataclass(frozen=True)
class ComparisonLine:
    """`kind` is how the cells are drawn."""

    name: str
    kind: str
    cells: Sequence[ComparisonCell]

    @property
    def same(self) -> bool:
        return all(cell.value == self.cells[0].value for cell in self.cells)


# --- question, configuration and results ---------------------------------------------------------------

FACTS: Sequence[tuple[str, str, Callable[[Run], Any]]] = (
    ("Question", "long", lambda run: run.question),
    ("Task", "text", lambda run: tasks.label(run.task)),
    ("Backbone", "text", lambda run: run.versions.get("backbone") or backbone_of(run)),
    ("Tools", "text", lambda run: parts.label_toolset(run.toolset)),
    ("Dataset", "text", lambda run: str(run.options.get("dataset", ""))),
    ("Seed", "text", lambda run: str(run.seed)),
    ("Created by", "text", lambda run: run.owner.get_username()),
    # Both: two runs may have failed for different reasons.
    ("Status", "status", lambda run: (run.status, run.reason)),
    ("Labels", "labels", lambda run: run.labels),
    ("Check", "check", lambda run: run.label_check and (run.label_check.status, run.label_check.pearson)),
    ("Description", "prose", lambda run: run.conclusion.get("description", "") or run.conclusion.get("bias", "")),
)
FIGURES: Sequence[tuple[str, Callable[[Run], float | None], Callable[[float], str]]] = (
    ("Best activation", lambda run: run.best_activation, figure),
    ("Exemplar threshold", lambda run: run.exemplar_mean, figure),
    ("Rounds", lambda run: run.rounds, "{:,}".format),
    ("Experiments", lambda run: run.experiment_count, "{:,}".format),
    ("Images", lambda run: run.observation_count, "{:,}".format),
    ("Tokens", lambda run: run.tokens, compact),
    ("Cost", lambda run: run.known_cost, dollars),
    ("Time", lambda run: run.seconds, duration),
)


def lines(runs: Sequence[Run], base: Run, viewer: User | None) -> list[ComparisonLine]:
    """Return lines of words, with the verdicts that the viewer may see, then of figures, each with its difference from
    the baseline's."""
    names, seen = SystemNameMasker(viewer), verdicts.find_verdicts(runs, viewer)
    facts = [
        # System and verdict depend on the viewer, so they are not among the constant lines.
        *FACTS[:2],
        ("System", "system", names.of),  # not every viewer may see the name
        *FACTS[2:],
        ("Verdict", "text", lambda run: seen[run.pk].in_words if run.pk in seen else ""),
    ]
    found = [ComparisonLine(name, kind, [ComparisonCell(run, read(run)) for run in runs]) for name, kind, read in facts]
    for name, measure, write in FIGURES:
        unknown, against = (dollars(None) if name == "Cost" else ""), measure(base)
        cells = []
        for run in runs:
            value = measure(run)
            text = unknown if value is None else write(value)
            cells.append(ComparisonCell(run, value, text, "" if run == base else difference(value, against, write)))
        found.append(ComparisonLine(name, "figure", cells))
    return found


NOISE = 1e-4
"""Relative difference up to which two figures count as equal."""


def difference(value: float | None, base: float | None, write: Callable[[float], str]) -> str:
    """Return the difference with its sign; "same" if it would be written as 0; "" if there is nothing to compare."""
    if value is None or base is None or not math.isfinite(value - base):
        return ""
    text = write(abs(value - base))
    if math.isclose(value, base, rel_tol=NOISE) or not re.search("[1-9]", text):
        return "same"
    return f"{'+' if value > base else MINUS}{text}"


# --- rounds -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparedRound:
    """What one run did in a round; it may not have come so far."""

    run: Run
    number: int
    scale: Scale
    reply: Replied | None
    experiments: Sequence[Listed]

    @property
    def headline(self) -> str:
        return run_rounds.headline(self.reply) if self.reply else ""

    @property
    def words(self) -> Any:
        return self.reply and (self.reply.prose.strip(), self.reply.conclusion)

    @property
    def hypotheses(self) -> Sequence[Hypothesis]:
        return self.reply.hypotheses if self.reply else []

    @property
    def programs(self) -> Sequence[tuple[str, str]]:
        return [(each.experiment.code.strip(), each.experiment.status) for each in self.experiments]

    @property
    def images(self) -> Sequence[tuple[str, float]]:
        return [(card.image, card.activation) for card in self.cards]

    @property
    def cards(self) -> Sequence[ImageCard]:
        return [card for each in self.experiments for card in each.cards]

    @property
    def logged(self) -> int:
        return sum(each.experiment.observation_count for each in self.experiments)


@dataclass(frozen=True)
class RoundPart:
    """One aspect of a round, for all runs."""

    name: str
    kind: str
    rounds: Sequence[ComparedRound]

    @property
    def values(self) -> list[Any]:
        return [getattr(one, self.kind) for one in self.rounds]

    @property
    def same(self) -> bool:
        return all(value == self.values[0] for value in self.values)


@dataclass(frozen=True)
class Round:
    number: int
    parts: Sequence[RoundPart]


PARTS = {"words": "Words", "hypotheses": "Hypotheses", "programs": "Program", "images": "Images"}


def rounds(runs: Sequence[Run], scale: Scale, first: int, last: int, only_differences: bool) -> list[Round]:
    """Return the rounds from `first` to `last`; with `only_differences`, without what all runs have alike."""
    # What was replied, by run and round
    events = Event.objects.filter(run__in=runs, kind="reply", payload__round__gte=first, payload__round__lte=last)
    said = ((event.run_id, event.content) for event in events.order_by("seq"))
    replies = {(run, reply.round): reply for run, reply in said if isinstance(reply, Replied)}
    # What was run, with its strongest images
    rows = Experiment.objects.filter(run__in=runs, round__gte=first, round__lte=last)
    ran: dict[tuple[int, int], list[Listed]] = {}
    # The deferred columns may be long, and are not shown.
    for each in list_experiments(list(rows.defer("state", "output", "calls").order_by("run", "number"))):
        ran.setdefault((each.experiment.run_id, each.experiment.round), []).append(each)
    # One scale for all runs, with each run's own threshold.
    scales = {run.pk: Scale(scale.low, scale.high, run.exemplar_mean) for run in runs}
    found = []
    for number in range(first, last + 1):
        of_runs = [
            ComparedRound(run, number, scales[run.pk], replies.get((run.pk, number)), ran.get((run.pk, number), []))
            for run in runs
        ]
        parts = [RoundPart(name, kind, of_runs) for kind, name in PARTS.items()]
        shown = [part for part in parts if any(part.values) and not (only_differences and part.same)]
        if shown:
            found.append(Round(number, shown))
    return found


def scale_of(runs: Sequence[Run]) -> Scale:
    """Return the scale on which the bars of all these runs are drawn; each run adds its own exemplar threshold."""
    ends = Observation.objects.filter(run__in=runs).aggregate(low=Min("activation"), high=Max("activation"))
    return Scale.of([*ends.values(), *(run.exemplar_mean for run in runs)], None)
