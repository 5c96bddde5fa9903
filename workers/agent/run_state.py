"""The state of a run, folded from its events: answers the questions of `rules` without reading all events.

`RunState.add` takes each event once, in order, so a worker that keeps the state reads only new events. The same events
give the same state, at any time and in any worker. Pure, like `rules`, which reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workers.agent.answers import FinalAnswer, complete_answer
from workers.protocols import ImagePart
from workers.record.events import (
    Event,
    ExperimentEnded,
    ExperimentStarted,
    Graded,
    LimitsChanged,
    Note,
    Reminder,
    Replied,
    Resumed,
    Retrying,
    Started,
    kind_of,
)
from workers.record.limits import Limits, Usage, explain_exceeded
from workers.record.stated_biases import StatedBias, add_stated

_FOR_MORE = frozenset({"incomplete", "final_answer"})
"""Reminders after which a reply continues the answer of the reply before."""


@dataclass
class SinceReply:
    """What came after the latest reply, or since the start before the first one."""

    begun: ExperimentStarted | None = None
    result: ExperimentEnded | None = None
    grade: Graded | None = None
    reasons: set[str] = field(default_factory=set)
    """Reasons of the reminders."""


@dataclass(frozen=True)
class Spent:
    """What a run had used at one moment, and the limits at that time."""

    limits: Limits | None
    rounds: int
    usage: Usage

    def explain_exceeded(self, seconds: float) -> str | None:
        """Say which limit was reached; None if none was. `seconds` is the work on the run."""
        return explain_exceeded(self.limits, self.rounds, self.usage, seconds) if self.limits else None


@dataclass
class RunState:
    """The state of a run after all events that were added."""

    events: list[Event] = field(default_factory=list)
    rounds: int = 0
    """Number of replies so far."""
    usage: Usage = Usage()  # noqa: RUF009  frozen, so it can be shared
    """Usage of replies, failed replies and descriptions."""
    suspended: bool = False
    """True if the run has ended, is paused or waits, and no person has resumed it since."""
    attempts: int = 0
    """Failures of the next step so far. Only resuming resets it; other actions of people do not."""
    trouble: str = ""
    """Reason of the latest failed step."""

    latest: Event | None = None
    """The latest reply."""
    answer: FinalAnswer = FinalAnswer()  # noqa: RUF009
    """The answer of the latest reply, together with the reply before where it continues that."""
    since: SinceReply = field(default_factory=SinceReply)
    last_round: int = 0
    """The highest round of a reply."""
    empty_replies: int = 0
    """Length of the latest series of replies without program or conclusion, since a person resumed the run."""
    last_note: int = 0
    """The number of the latest note of a person; 0 for none."""

    experiments: int = 0
    """Number of programs started."""
    results: list[ExperimentEnded] = field(default_factory=list)
    exemplar_mean: float | None = None
    """Mean activation of the exemplars, from the latest result that knew it."""
    best: float | None = None
    """The highest activation among all images that the run measured, exemplars excluded."""

    grades: int = 0
    unreadable_grades: int = 0
    """Grades of labels whose words could not be tested."""
    asked_for_more: bool = False
    """True if the agent was asked before the latest reply for the missing parts of an answer."""
    confirm_requests: int = 0
    """How often the agent was asked to test the biases that it states."""
    final_requests: list[Spent] = field(default_factory=list)
    """Usage at each request for the final answer since the limits last changed, before the latest reply."""
    awaits_final_answer: bool = False
    """True if the final answer was asked for and has neither come nor been put off since."""

    told: dict[int, tuple[str | ImagePart, ...]] = field(default_factory=dict, compare=False)
    """What the agent was told of each result, by the number of its event. Filled by `conversation`."""

    _started: Started | None = None
    _changed: Limits | None = None
    _new_requests: list[Spent] = field(default_factory=list)
    """As `final_requests`, since the latest reply."""
    _stated: dict[object, StatedBias] = field(default_factory=dict)

    @property
    def last_seq(self) -> int:
        """Return the number of the last event; 0 if there is none."""
        return self.events[-1].seq if self.events else 0

    @property
    def start(self) -> Started:
        """Return how the run started. Raises ValueError if it has not."""
        if self._started is None:
            raise ValueError("The run has not started: none of its events is 'started'.")
        return self._started

    @property
    def limits(self) -> Limits:
        """Return the current limits: the latest that a person set, else those of the start."""
        return self._changed or self.start.limits

    @property
    def reply(self) -> Replied:
        """Return the latest reply. Raises ValueError if there is none."""
        if self.latest is None or not isinstance(self.latest.payload, Replied):
            raise ValueError("The run has no reply yet.")
        return self.latest.payload

    @property
    def has_unread_note(self) -> bool:
        """True if a person said something that the author of the latest reply did not know."""
        return self.latest is not None and self.last_note > (self.reply.heard or self.latest.seq)

    @property
    def stated(self) -> list[StatedBias]:
        """Return every bias that replies state, each as it was first worded."""
        return list(self._stated.values())

    def explain_exceeded(self, seconds: float) -> str | None:
        """Say which limit is reached; None if none is. `seconds` is the work on the run so far."""
        return explain_exceeded(self.limits, self.rounds, self.usage, seconds)

    def add(self, event: Event) -> None:
        """Take the next event into account."""
        payload = event.payload
        self._add_to_standing(event)
        match payload:
            case Started():
                self._started = self._started or payload
            case Replied():
                self._add_reply(event, payload)
            case ExperimentStarted():
                self.experiments += 1
                self.since.begun = self.since.begun or payload
            case ExperimentEnded():
                self._add_result(payload)
            case Reminder():
                self._add_reminder(payload)
            case Graded():
                self.grades += 1
                self.unreadable_grades += payload.direction == "not readable"
                self.since.grade = self.since.grade or payload
            case _:
                self._add_steering(event)
        # After the rest: a reminder notes the usage before it
        if isinstance(usage := getattr(payload, "usage", None), Usage):
            self.usage = self.usage + usage
        self.events.append(event)

    def _add_to_standing(self, event: Event) -> None:
        """Update whether the run continues, and how often its next step has failed."""
        kind = kind_of(event.kind)
        if isinstance(event.payload, Resumed):
            self.suspended = False
        elif kind.ends or kind.suspends:
            self.suspended = True
        # A person's note or new limit does not mend the failing step, so only progress resets the count.
        if isinstance(event.payload, Retrying):
            self.attempts, self.trouble = self.attempts + 1, event.payload.what
        elif not isinstance(event.payload, Note | LimitsChanged):
            self.attempts = 0

    def _add_steering(self, event: Event) -> None:
        """Record what a person said or did."""
        match event.payload:
            case Note():
                self.last_note = event.seq
            case LimitsChanged() as change:
                self._changed, self.awaits_final_answer = change.limits, False
                self.final_requests, self._new_requests = [], []
            case Resumed():
                self.empty_replies, self.awaits_final_answer = 0, False

    def _add_reply(self, event: Event, reply: Replied) -> None:
        # An experiment in between begins a new answer.
        goes_on = not self.since.begun and bool(self.since.reasons & _FOR_MORE)
        self.answer = complete_answer(self.reply if self.latest and goes_on else None, reply)
        self.asked_for_more = self.asked_for_more or "incomplete" in self.since.reasons
        self.final_requests = [*self.final_requests, *self._new_requests]
        self.awaits_final_answer = False
        is_empty = reply.code is None and reply.conclusion is None
        self.empty_replies = self.empty_replies + 1 if is_empty else 0
        if reply.conclusion:
            # Dated by the latest experiment: only images drawn after a bias was stated can test it.
            add_stated(self._stated, reply.conclusion, self.results[-1].number if self.results else 0)
        self.latest, self.since, self._new_requests = event, SinceReply(), []
        self.rounds, self.last_round = self.rounds + 1, max(self.last_round, reply.round)

    def _add_result(self, result: ExperimentEnded) -> None:
        self.results.append(result)
        self.since.result = self.since.result or result
        if result.exemplar_mean is not None:
            self.exemplar_mean = result.exemplar_mean
        known = [] if self.best is None else [self.best]
        self.best = max([*known, *list_own(result)], default=None)

    def _add_reminder(self, reminder: Reminder) -> None:
        self.since.reasons.add(reminder.reason)
        self.confirm_requests += reminder.reason == "confirm"
        if reminder.reason == "final_answer":
            # The final answer is judged by the limit that the agent was told, though a person may change it meanwhile.
            limits = self._changed or (self._started.limits if self._started else None)
            self._new_requests.append(Spent(limits, self.rounds, self.usage))
            self.awaits_final_answer = True


def list_own(result: ExperimentEnded) -> list[float]:
    """Return activations of images that are not exemplars; in older records, of the images that were logged."""
    # Older records have no `measured`.
    if result.measured:
        return [] if result.best is None else [result.best]
    logged = (observation for entry in result.entries for observation in entry.observations)
    return [observation.activation for observation in logged if observation.origin != "exemplar"]
