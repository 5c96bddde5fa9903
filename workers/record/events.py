"""The events of a run: what happened, in order. Everything that is shown or counted is derived from them.

  started ─► reply ─► experiment ─► result ─► [reminder] ─► reply ─► … ─► concluded | limit_reached | cancelled | failed
                └─► blocked | paused | waiting_for_person ─► resumed | reply ─► (the step that was due)

A person's note, new limits and a new author of replies can come at any point. A kind of event is a class here and
its row in `KINDS`. Payloads are stored as plain JSON (`decoding`) and contain images as keys only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from workers.record.bias_tests import BiasTest
from workers.record.experiments import ExperimentStatus, LogEntry, Observation, ToolCall
from workers.record.functions import FunctionScore
from workers.record.limits import Limits, Usage
from workers.record.replies import Conclusion, FunctionCall, Hypothesis, ImageLimit, ReasoningItems
from workers.record.statuses import ENDED, SUSPENDED, Status
from workers.record.systems import OrdinaryActivations, SystemSpec

Direction = Literal["", "too narrow", "too broad", "elsewhere", "not readable"]
"""What is wrong with a label that is sent back to the agent.

It leaves out images that activate the unit, so that there may be a second cause; it describes images that do not;
both, for most of them; or its words cannot be tested.
"""


@dataclass(frozen=True)
class Payload:
    """The content of an event. Every class of payloads is one of these."""


@dataclass(frozen=True)
class Started(Payload):
    """The first event: everything the agent was told, so that a run stays readable when the code has changed."""

    question: str
    task: str
    """A key of `tasks.TASKS`."""
    system: SystemSpec
    backbone: str
    limits: Limits
    seed: int
    instructions: str
    """The system message, API reference included."""
    assignment: str
    """The first user message."""
    reference: str
    """The text of the API reference, generated from the docstrings of System and Tools."""
    versions: Mapping[str, str] = field(default_factory=dict)
    reflections: int = 0
    """How often a label that fails its check is sent back to the agent, 0 to 10."""


@dataclass(frozen=True)
class Replied(Payload):
    """A reply of the backbone, parsed when it was recorded."""

    round: int
    author: str
    """Display name of the backbone."""
    text: str
    """The complete reply. Functions that it called are written out in the form of a reply."""
    prose: str
    """The reply without its tagged blocks."""
    hypotheses: tuple[Hypothesis, ...] = ()
    code: str | None = None
    conclusion: Conclusion | None = None
    usage: Usage = Usage()  # noqa: RUF009  frozen, so one for all will do
    seconds: float = 0.0
    captions: int = 0
    """Number of images that were replaced by their captions."""
    captions_reason: str = ""
    """Why, in words that follow a colon. Empty in old records, where the context window was too small."""
    image_limit: ImageLimit | None = None
    """How many images the provider accepts, if known by then. Later requests of this run respect it."""
    heard: int = 0
    """The last event that its author knew. Notes written during the reply come after it."""
    by_person: bool = False
    """True if a person wrote it."""
    provider_errors: tuple[str, ...] = ()
    """Errors of the provider before the reply arrived, in sentences for people."""
    reasoning: str = ""
    """The model's reasoning before the reply. Stored for people; the agent does not see it again."""
    reasoning_items: ReasoningItems | None = None
    """The reasoning in the provider's form, if the provider accepts it back. It is not part of the agent's words."""
    tags: tuple[str, ...] = ()
    """The tags of the conclusion that have text. LABEL is included if the text says that there is none."""
    readings: tuple[str, ...] = ()
    """Remarks on how an ambiguous reply was read, in sentences that its author is told."""
    calls: tuple[FunctionCall, ...] = ()
    """The functions that it called, as received."""


@dataclass(frozen=True)
class ExperimentStarted(Payload):
    """A program starts to run."""

    round: int
    number: int
    """Counts the run's experiments from 1."""
    code: str


@dataclass(frozen=True)
class ExperimentEnded(Payload):
    """The result of a program: what it logged and printed, or why it failed."""

    round: int
    number: int
    status: ExperimentStatus
    entries: tuple[LogEntry, ...] = ()
    output: str = ""
    output_truncated: bool = False
    error: str = ""
    seconds: float = 0.0
    """The program's own time."""
    tool_seconds: float = 0.0
    calls: tuple[ToolCall, ...] = ()
    exemplar_mean: float | None = None
    """The mean activation of the exemplars, once known. Lower activations are weak."""
    usage: Usage = Usage()  # noqa: RUF009  frozen, so one for all will do
    """Tokens and cost of describing images, if a language model does that."""
    measured: int = 0
    """Number of images that the system measured in this experiment, logged or not."""
    best: float | None = None
    """The highest activation that the run has measured so far, logged or not, without exemplars."""
    own: bool = False
    """True if this experiment measured images other than exemplars."""
    ordinary: OrdinaryActivations | None = None
    """Activations of ordinary images of the dataset, once known."""
    rounds: int | None = None
    """The limit of rounds at this time."""
    ordinary_images: tuple[Observation, ...] = ()
    """Random ordinary images of the dataset, shown with the first experiment; the program did not log them."""

    @property
    def observations(self) -> list[Observation]:
        """All logged observations, in order."""
        return [each for entry in self.entries for each in entry.observations]


@dataclass(frozen=True)
class Reminder(Payload):
    """A message from the system to the agent between rounds. `reason` is the name of its prompt."""

    round: int
    reason: Literal["continue", "format", "conclude_again", "incomplete", "set_aside", "final_answer", "confirm"]
    text: str
    usage: Usage = Usage()  # noqa: RUF009
    """What a discarded reply took, if that is why the message was sent."""


@dataclass(frozen=True)
class Graded(Payload):
    """The result of testing a concluded label on unseen images. A label that fails is sent back to the agent.

    `grades.py` describes it in words.
    """

    round: int
    label: str
    passed: bool = False
    pearson: float | None = None
    """r over natural images, in [-1, 1]."""
    auprc: float | None = None
    """Over natural images, in [0, 1]."""
    generated_auc: float | None = None
    """Of images drawn for the label against neutral images, in [0, 1]."""
    bright_positives: float | None = None
    """Share of the images drawn for the label that reach half of the exemplars' mean."""
    described: float | None = None
    """Share of the brightest natural images that the label describes. A low share suggests a second cause."""
    left: int = 0
    """Reflections that remain after this one."""
    images: tuple[Observation, ...] = ()
    """The most informative images drawn for the label. Their title is the prompt."""
    reason: str = ""
    """Why the label could not be tested."""
    needed: Mapping[str, float] = field(default_factory=dict)
    """Name of a figure above -> the value it needs. Empty in events from before this field existed."""
    reachable: float | None = None
    """The highest reachable r: that of the truth, or a bound."""
    direction: Direction = ""
    reading: str = ""
    """How the label was read, in a sentence, if that is not obvious."""

    @property
    def goes_back(self) -> bool:
        """True if the agent continues with the result of the check. Otherwise the run concludes with the label."""
        return not self.passed and (not self.reason or self.direction == "not readable")


@dataclass(frozen=True)
class Retrying(Payload):
    """An internal error; the step will be tried again. Shown to people, never to the agent."""

    round: int
    attempt: int
    what: str


@dataclass(frozen=True)
class Blocked(Payload):
    """The run waits for a person, because the provider refuses or cannot be reached, or a part is missing. No work
    is lost."""

    round: int
    reason: str
    """What is wrong and how to fix it."""
    usage: Usage = Usage()  # noqa: RUF009  frozen, so one for all will do
    """What the failed reply took."""


@dataclass(frozen=True)
class WaitingForPerson(Payload):
    """The run waits for the reply of a person who plays the agent in this round."""

    round: int


@dataclass(frozen=True)
class Paused(Payload):
    """A person paused the run between two rounds. `round` is the last completed one."""

    round: int
    who: str


@dataclass(frozen=True)
class Resumed(Payload):
    """A person resumed a run that was paused, blocked, failed or cancelled. Attempts are counted from zero again."""

    round: int
    who: str


@dataclass(frozen=True)
class Note(Payload):
    """A message from a person to the agent. The backbone reads it in its next message, without the name."""

    round: int
    who: str
    text: str


@dataclass(frozen=True)
class LimitsChanged(Payload):
    """A person changed the limits. The new ones apply from here on."""

    round: int
    who: str
    why: str
    limits: Limits
    before: Limits | None = None
    """The previous limits."""


@dataclass(frozen=True)
class HandedOver(Payload):
    """Another backbone writes the replies from now on, for example an agent instead of a person."""

    round: int
    who: str
    backbone: str
    """A key of the registry."""
    backbone_model: str = ""
    label: str = ""
    """Its display name."""


@dataclass(frozen=True)
class Forked(Payload):
    """All events before were copied from another run, up to the end of `round`."""

    round: int
    who: str
    run: int
    """The source run."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """What differs from the source run, in words: name -> value."""


@dataclass(frozen=True)
class Ended(Payload):
    """The end of the run. `reason` is a sentence that a person can act on; `conclusion` is empty unless the agent
    gave one."""

    reason: str = ""
    conclusion: Conclusion = Conclusion()  # noqa: RUF009
    usage: Usage = Usage()  # noqa: RUF009
    """What a discarded reply took."""
    score: FunctionScore | None = None
    """How correct a conclusion about a function is, with the truth. Only people see it."""
    biases: tuple[BiasTest, ...] = ()
    """Tests of the biases that it states on the run's images, largest effect first. Only people see them."""


@dataclass(frozen=True)
class Unreadable(Payload):
    """Replaces an event of an unknown kind."""


class Audience(StrEnum):
    """Who an event is shown to: a team member, a reader with a share link, or a reader of an exported file."""

    TEAM = "team"
    LINK = "link"
    FILE = "file"


@dataclass(frozen=True)
class Kind:
    """A row of the table of events."""

    payload: type[Payload]
    template: str
    """In templates/display/events."""
    writer: Literal["agent", "worker", "person"]
    status: Status | None = None
    """Status of the run after the event, if it changes."""
    people: tuple[str, ...] = ()
    """Fields that name people. A share link shows them only if its creator chose so."""
    hidden: Mapping[Audience, tuple[str, ...]] = field(default_factory=dict)
    """Fields that are emptied for an audience, because internal errors may name folders and hosts."""

    @property
    def ends(self) -> bool:
        return self.status in ENDED

    @property
    def suspends(self) -> bool:
        """True if no worker holds the run after the event, although it has not ended."""
        return self.status in SUSPENDED


def _internal(*names: str) -> Mapping[Audience, tuple[str, ...]]:
    return {Audience.LINK: names}


KINDS: Mapping[str, Kind] = {
    "started": Kind(Started, "started", "worker", hidden=_internal("versions")),
    "reply": Kind(
        Replied,
        "reply",
        "agent",
        people=("author",),
        hidden=_internal("provider_errors", "image_limit", "reasoning", "reasoning_items"),
    ),
    "experiment": Kind(ExperimentStarted, "experiment", "worker"),
    "result": Kind(ExperimentEnded, "experiment", "worker"),
    "reminder": Kind(Reminder, "reminder", "worker"),
    "graded": Kind(Graded, "graded", "worker", hidden=_internal("reason")),
    "retrying": Kind(Retrying, "retrying", "worker", hidden=_internal("what")),
    "blocked": Kind(Blocked, "blocked", "worker", Status.WAITING, hidden=_internal("reason")),
    "waiting_for_person": Kind(WaitingForPerson, "waiting_for_person", "worker", Status.WAITING),
    "paused": Kind(Paused, "paused", "person", Status.PAUSED, people=("who",)),
    "resumed": Kind(Resumed, "resumed", "person", Status.QUEUED, people=("who",)),
    "note": Kind(Note, "note", "person", people=("who",)),
    "limits": Kind(LimitsChanged, "limits", "person", people=("who",)),
    "handover": Kind(HandedOver, "handover", "person", people=("who",)),
    "forked": Kind(Forked, "forked", "person", people=("who",)),
    "concluded": Kind(Ended, "end", "agent", Status.CONCLUDED),
    "limit_reached": Kind(Ended, "end", "worker", Status.LIMIT_REACHED),
    "cancelled": Kind(Ended, "end", "person", Status.CANCELLED, people=("reason",)),
    "failed": Kind(Ended, "end", "worker", Status.FAILED, hidden=_internal("reason")),
}
"""Kind of event -> its row."""

UNKNOWN = Kind(Unreadable, "unreadable", "worker")


def kind_of(name: str) -> Kind:
    """Return the row of a kind, or `UNKNOWN`."""
    return KINDS.get(name, UNKNOWN)


@dataclass(frozen=True)
class Event:
    """`seq` counts a run's events from 1 without gaps."""

    seq: int
    kind: str
    payload: Payload
