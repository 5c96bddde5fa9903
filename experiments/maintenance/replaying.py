"""Replay a run's events in memory through the projections that wrote its rows, and find rows that differ.

This works while the installation runs: what changes meanwhile is read again, so that a finding is of one moment.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.exceptions import ObjectDoesNotExist

from experiments.core import projections
from experiments.core.row_writers import Bulk
from experiments.core.search_index.texts import Text
from experiments.maintenance.findings import Finding, FindingKind
from experiments.models import Event, Image, Run, SearchText
from workers.record.events import ExperimentEnded, Payload, Replied, Started
from workers.record.statuses import Status

TRIES = 5
"""How often a run is read again because it continued meanwhile."""
AT_ONCE = 500
"""Keys per query."""
RESTORE = "Restore it from a backup (manage.py restore into an empty installation), or delete the run."

_ASKED = (
    *("id", "owner_id", "created", "question", "task", "system_kind", "model", "layer", "unit", "options", "toolset"),
    *("backbone", "backbone_model", "limits", "seed", "parent_id", "fork_round", "fork_plan"),
)
"""Columns of the query, which no event contains."""
_RUN = (
    *("rounds", "experiment_count", "observation_count", "prompt_tokens", "completion_tokens", "cost", "unpriced"),
    *("exemplar_mean", "best_activation", "versions", "conclusion", "reason", "backbone", "backbone_model", "limits"),
)
_EXPERIMENT = (
    *("round", "code", "status", "output", "error", "seconds", "tool_seconds", "calls", "seq", "observation_count"),
    "best_activation",
)
_OBSERVATION = (
    *("title", "activation", "claimed", "measured", "differs", "image_id", "masked_id", "origin", "prompt", "seed"),
    *("parameters", "original", "is_original", "change", "map_id", "map_low", "map_high", "map_threshold"),
)
_HYPOTHESIS = ("text", "status", "reason")


class _Rows(Bulk):
    """The rows that follow from events, without the search's passages."""

    def titles(self, number: int) -> list[Text]:
        del number
        return []

    def add_passages(self, rows: Sequence[SearchText]) -> None:
        """Do nothing: the search is not compared."""


def check_run(key: int) -> list[Finding]:
    """Return problems of a run's events and of the rows that follow from them; none for a deleted run."""
    found: list[Finding] = []
    for _ in range(TRIES):
        row = Run.objects.filter(pk=key).first()
        if row is None:
            return []
        found = _Replay(row).compare()
        # What looks wrong may be a run that continued meanwhile
        if not found or Run.objects.filter(pk=key, last_seq=row.last_seq).exists():
            break
    return found


class _Replay:
    """The replay of one run."""

    def __init__(self, row: Run) -> None:
        self.row = row
        # An unsaved run: the projections change it in memory alone.
        self.run = Run(**{name: getattr(row, name) for name in _ASKED})
        self.rows = _Rows(self.run)
        self.replies: dict[int, int] = {}
        """Round -> the event of its reply."""
        self.keys: dict[str, int] = {}
        """Key of each image that an event names -> the first such event."""
        self.has_started = False

    def compare(self) -> list[Finding]:
        if wrong := list(self._go_through()):
            return wrong  # rows are not compared with missing events
        return [
            *self._compare_run(),
            *self._compare_experiments(),
            *self._compare_observations(),
            *self._compare_hypotheses(),
            *self._compare_labels(),
            *self._find_lost_images(),
        ]

    def _go_through(self) -> Iterator[Finding]:
        """Replay the events and yield their problems. After the first event that does not fit, the rest is skipped."""
        for due, event in enumerate(self.row.events.order_by("seq").iterator(), 1):
            if event.seq != due:
                yield self._wrong(FindingKind.EVENTS, f"event {due} is missing; the next is {event.seq}.", due)
                return
            if event.is_unreadable:
                yield self._wrong(FindingKind.EVENTS, f"its payload is none of the kind {event.kind!r}.", due)
                return
            if reason := self._replay(event):
                yield self._wrong(FindingKind.EVENTS, reason, due)
                return
        if self.run.last_seq != self.row.last_seq:
            reason = f"the run counts {self.row.last_seq} events, and {self.run.last_seq} are there."
            yield self._wrong(FindingKind.EVENTS, reason, self.run.last_seq)

    def _replay(self, event: Event) -> str:
        """Apply an event; return why it does not fit the events before it, "" if it does."""
        self.run.last_seq, event.run = event.seq, self.run
        match event.content:
            case Replied() as reply:
                self.replies.setdefault(reply.round, event.seq)
            case Started():
                self.has_started = True
        for key in _list_images(event.content):
            self.keys.setdefault(key, event.seq)
        try:
            # An empty state: it is stored beside the events and cannot follow from them.
            projections.update_rows(self.run, event, b"", self.rows)
        except (ObjectDoesNotExist, ValueError, KeyError, TypeError) as error:
            return f"it does not fit what stands before it: {error}."
        return ""

    def _compare_run(self) -> Iterator[Finding]:
        changed = self.row.events.filter(kind="limits").exists()
        # Without such an event the limits are those of the query, which no event contains.
        columns = _RUN if changed else tuple(name for name in _RUN if name != "limits")
        yield from self._differences("the run", self.run, self.row, columns, self.row.last_seq)
        # A worker that claims a run records this only in the run's row.
        alike = {Status.QUEUED, Status.RUNNING}
        if self.row.status != self.run.status and not {self.row.status, self.run.status} <= alike:
            yield self._differs("the run", "status", self.run.status, self.row.status, self.row.last_seq)
        if self.run.has_ended != (self.row.ended is not None):
            said = "has an end" if self.row.ended else "has no time of its end"
            yield self._wrong(FindingKind.ROWS, f"the run {said}, unlike its events.", self.row.last_seq)
        if self.has_started != (self.row.started is not None):
            said = "has begun" if self.row.started else "has no time of its beginning"
            yield self._wrong(FindingKind.ROWS, f"the run {said}, unlike its events.", self.row.last_seq)

    def _compare_experiments(self) -> Iterator[Finding]:
        there = {each.number: each for each in self.row.experiments.defer("state")}
        for number in sorted(there.keys() | self.rows.experiments):
            due = self.rows.experiments.get(number)
            seq = due.seq if due else None
            yield from self._differences(f"experiment {number}", due, there.get(number), _EXPERIMENT, seq)

    def _compare_observations(self) -> Iterator[Finding]:
        rows = self.row.observations.select_related("experiment").only("experiment__number", "position", *_OBSERVATION)
        there = {(each.experiment.number, each.position): each for each in rows}
        made = {(each.experiment.number, each.position): each for each in self.rows.observations}
        for place in sorted(there.keys() | made):
            due = made.get(place)
            name = f"image {place[1]} of experiment {place[0]}"
            seq = due.experiment.seq if due else None
            yield from self._differences(name, due, there.get(place), _OBSERVATION, seq)

    def _compare_hypotheses(self) -> Iterator[Finding]:
        there = {(each.round, each.number): each for each in self.row.hypotheses.all()}
        for place in sorted(there.keys() | self.rows.hypotheses):
            name, seq = f"hypothesis {place[1]} of round {place[0]}", self.replies.get(place[0])
            yield from self._differences(name, self.rows.hypotheses.get(place), there.get(place), _HYPOTHESIS, seq)

    def _compare_labels(self) -> Iterator[Finding]:
        made = sorted((each.position, each.text) for each in self.rows.labels)
        there = sorted(self.row.label_set.filter(source="run").values_list("position", "text"))
        if made != there:
            due, kept = ([text for _, text in each] for each in (made, there))
            yield self._differs("the run", "labels", due, kept, self.row.last_seq)

    def _find_lost_images(self) -> Iterator[Finding]:
        keys = list(self.keys)
        there: set[str] = set()
        for start in range(0, len(keys), AT_ONCE):
            there.update(Image.objects.filter(key__in=keys[start : start + AT_ONCE]).values_list("key", flat=True))
        for key in keys:
            if key not in there:
                words, at = "the event names an image that is not known.", self.keys[key]
                yield Finding(FindingKind.IMAGE, words, RESTORE, self.row.pk, at, key)

    def _differences(self, name: str, due: Any, there: Any, columns: Sequence[str], seq: int | None) -> list[Finding]:
        if due is None or there is None:
            words = "is missing" if there is None else "follows from no event"
            return [self._wrong(FindingKind.ROWS, f"{name} {words}.", seq)]
        pairs = [(column, getattr(due, column), getattr(there, column)) for column in columns]
        return [self._differs(name, each, a, b, seq) for each, a, b in pairs if not _is_same(a, b)]

    def _differs(self, name: str, column: str, due: Any, there: Any, seq: int | None) -> Finding:
        words = f"{column} of {name} is {_shorten(there)}; by its events it is {_shorten(due)}."
        return self._wrong(FindingKind.ROWS, words, seq)

    def _wrong(self, kind: FindingKind, reason: str, seq: int | None) -> Finding:
        return Finding(kind, reason, RESTORE, self.row.pk, seq)


def _list_images(payload: Payload) -> Iterator[str]:
    """Yield the keys of the images in an event."""
    shown = payload.observations if isinstance(payload, ExperimentEnded) else getattr(payload, "images", ())
    for each in shown:
        yield from filter(None, (each.image, each.masked, each.map.image if each.map else None))


def _is_same(due: Any, there: Any) -> bool:
    """True if two values of a column are equal, up to the precision of JSON and floats."""
    if isinstance(due, float) and isinstance(there, float | int):
        # Sums of floats depend on the order of the additions.
        return math.isclose(due, there, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(due) and math.isnan(there))
    if isinstance(due, dict | list | tuple):
        return bool(json.loads(json.dumps(due)) == there)
    return bool(due == there)


def _shorten(value: Any) -> str:
    words = repr(str(value) if isinstance(value, str) else value)
    return words if len(words) <= 80 else f"{words[:77]}…"
