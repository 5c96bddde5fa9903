"""The events of a run: what happened, in order, and nothing else. Everything shown or counted derives from them.

  started ─► reply ─► experiment ─► result ─► [reminder] ─► reply ─► … ─► concluded | limit_reached | cancelled | failed
                └─► blocked | paused | waiting_for_person ─► resumed | reply ─► (the step that was due)

A person's note, new limits and a new author of the replies may come at any place. A kind of event is a class here and
its row of `KINDS`; payloads travel as plain JSON (`decoding`), images appear as keys only.
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
from workers.record.statuses import ENDED, STILL, Status
from workers.record.systems import OrdinaryActivations, SystemSpec

Direction = Literal["", "too narrow", "too broad", "elsewhere", "not readable"]
"""What is wrong with a label that goes back: it leaves out images that activate the unit (a second cause does so as
well), describes images that do not, or both for most of them; or its words cannot be tested."""


@dataclass(frozen=True)
class Payload:
    """What an event says. Every class of payloads is one of these."""


@dataclass(frozen=True)
class Started(Payload):
    """The first event: everything the agent was told, so that a run can be read without the code of its day."""

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
    """The API text, generated from the docstrings of System and Tools."""
    versions: Mapping[str, str] = field(default_factory=dict)
    reflections: int = 0
    """How often a label that fails its check goes back to the agent, 0 to 10."""


@dataclass(frozen=True)
class Replied(Payload):
    """A reply of the backbone, parsed when it was recorded."""

    round: int
    author: str
    """The backbone's label."""
    text: str
    """The reply, whole; functions that it called stand in it, written out in the form of a reply."""
    prose: str
    """The reply without its tagged blocks."""
    hypotheses: tuple[Hypothesis, ...] = ()
    code: str | None = None
    conclusion: Conclusion | None = None
    usage: Usage = Usage()  # noqa: RUF009  frozen, so one for all will do
    seconds: float = 0.0
    captions: int = 0
    """Images that gave way to their captions."""
    captions_reason: str = ""
    """Why they did, in words that follow a colon; empty in old records, where the context window was too small."""
    image_limit: ImageLimit | None = None
    """How many images the provider takes, where that was known by then. Later replies of this run keep to it."""
    heard: int = 0
    """The last event that its author knew; notes made while it was written come after it."""
    by_person: bool = False
    """Whether a person wrote it."""
    provider_errors: tuple[str, ...] = ()
    """What came between the question and the reply, in sentences for people."""
    reasoning: str = ""
    """What the model thought before it replied. Kept for people; the agent is not shown it again."""
    reasoning_items: ReasoningItems | None = None
    """The same for the provider, where it takes its thoughts back; no part of the agent's words."""
    tags: tuple[str, ...] = ()
    """The tags of the conclusion that have words behind them; LABEL too where these say that there is none."""
    readings: tuple[str, ...] = ()
    """How the reply was read where it was not plain, in sentences that its author is told."""
    calls: tuple[FunctionCall, ...] = ()
    """The functions that it called, as they came."""


@dataclass(frozen=True)
class ExperimentStarted(Payload):
    """A program begins to run."""

    round: int
    number: int
    """Counts the run's experiments from 1."""
    code: str


@dataclass(frozen=True)
class ExperimentEnded(Payload):
    """What came of a program: what it logged and printed, or why it failed."""

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
    """The mean activation of the exemplars, once known; activations below it are weak."""
    usage: Usage = Usage()  # noqa: RUF009  frozen, so one for all will do
    """What describing images took, where a language model does it."""
    measured: int = 0
    """Images the system measured in this experiment, logged or not."""
    best: float | None = None
    """The highest activation so far of all that the run measured, logged or not; exemplars do not count."""
    own: bool = False
    """Whether this experiment measured images that are no exemplars."""
    ordinary: OrdinaryActivations | None = None
    """What ordinary images of the dataset get, once known."""
    rounds: int | None = None
    """How many rounds the run could have at this time."""
    ordinary_images: tuple[Observation, ...] = ()
    """Random ordinary images of the dataset, shown with the first experiment; the program did not log them."""

    @property
    def observations(self) -> list[Observation]:
        """All that was logged, in order."""
        return [each for entry in self.entries for each in entry.observations]


@dataclass(frozen=True)
class Reminder(Payload):
    """Our words to the agent between rounds. `reason` is the name of the prompt they came from."""

    round: int
    reason: Literal["continue", "format", "conclude_again", "incomplete", "set_aside", "final_answer", "confirm"]
    text: str
    usage: Usage = Usage()  # noqa: RUF009
    """What a reply took that did not come about, where that is why it is said."""


@dataclass(frozen=True)
class Graded(Payload):
    """What a concluded label was worth on images that the agent never saw; one that failed goes back to the agent.

    `grades.py` puts it in words.
    """

    round: int
    label: str
    passed: bool = False
    pearson: float | None = None
    """r over natural images, in [-1, 1]."""
    auprc: float | None = None
    """Over natural images, in [0, 1]."""
    generated_auc: float | None = None
    """Of images drawn for the label against neutral ones, in [0, 1]."""
    bright_positives: float | None = None
    """Share of the images drawn for the label that reach half of the mean of the exemplars."""
    described: float | None = None
    """Share of the brightest natural images that the label describes; little of it hints at a second cause."""
    left: int = 0
    """Reflections that are left after this one."""
    images: tuple[Observation, ...] = ()
    """The most telling of the images drawn for the label; the title is the prompt."""
    reason: str = ""
    """Why the label could not be tested."""
    needed: Mapping[str, float] = field(default_factory=dict)
    """Name of a figure above -> what it had to reach. Empty for events from before there was this field."""
    reachable: float | None = None
    """The r that was reachable: that of the truth, or a bound of it."""
    direction: Direction = ""
    reading: str = ""
    """How the label was read, in a sentence, where that is not plain."""

    @property
    def goes_back(self) -> bool:
        """Whether the agent goes on with what the check showed. Without it the run concludes with the label."""
        return not self.passed and (not self.reason or self.direction == "not readable")


@dataclass(frozen=True)
class Retrying(Payload):
    """Our machinery broke and the step will be tried again. Shown to people, never to the agent."""

    round: int
    attempt: int
    what: str


@dataclass(frozen=True)
class Blocked(Payload):
    """The run waits for a person: a provider refuses or stays away, or a part is missing. Nothing is lost by it."""

    round: int
    reason: str
    """What is wrong and how to put it right."""
    usage: Usage = Usage()  # noqa: RUF009  frozen, so one for all will do
    """What the reply took that did not come about."""


@dataclass(frozen=True)
class WaitingForPerson(Payload):
    """A person writes the reply of this round, and it is not there yet."""

    round: int


@dataclass(frozen=True)
class Paused(Payload):
    """A person paused the run between two rounds. `round` is the last one played."""

    round: int
    who: str


@dataclass(frozen=True)
class Resumed(Payload):
    """A person resumed a run that was paused, waited, failed or was stopped. Attempts are counted anew from here."""

    round: int
    who: str


@dataclass(frozen=True)
class Note(Payload):
    """What a person tells the agent. The backbone reads it as part of its next message, without the name."""

    round: int
    who: str
    text: str


@dataclass(frozen=True)
class LimitsChanged(Payload):
    """A person changed the limits: from here on these hold."""

    round: int
    who: str
    why: str
    limits: Limits
    before: Limits | None = None
    """Those that held until then."""


@dataclass(frozen=True)
class HandedOver(Payload):
    """From the next reply on another backbone writes: an agent in a person's stead, or the other way round."""

    round: int
    who: str
    backbone: str
    """A key of the registry."""
    backbone_model: str = ""
    label: str = ""
    """What people call it."""


@dataclass(frozen=True)
class Forked(Payload):
    """Everything before was copied from another run, up to the end of `round`; from here on this run is its own."""

    round: int
    who: str
    run: int
    """The run it comes from."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """What differs from it, in words: name -> value."""


@dataclass(frozen=True)
class Ended(Payload):
    """The end. `reason` is a sentence a person can act on; `conclusion` is empty unless the agent gave one."""

    reason: str = ""
    conclusion: Conclusion = Conclusion()  # noqa: RUF009
    usage: Usage = Usage()  # noqa: RUF009
    """What a reply took that did not come about."""
    score: FunctionScore | None = None
    """How right the conclusion about a function is, with the truth; people see it, the agent never does."""
    biases: tuple[BiasTest, ...] = ()
    """What the run's images say of the biases that it states, the greatest effect first; people see it alone."""


@dataclass(frozen=True)
class Unreadable(Payload):
    """Stands for an event of a kind that is not known here."""


class Audience(StrEnum):
    """Who is shown an event: a member, whoever follows a link, whoever opens an exported file."""

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
    """How the run stands from then on, where the event changes that."""
    people: tuple[str, ...] = ()
    """Fields that name people: under a link only where whoever made it chose so."""
    hidden: Mapping[Audience, tuple[str, ...]] = field(default_factory=dict)
    """Fields that are emptied for an audience: what broke on our side may name folders and hosts."""

    @property
    def ends(self) -> bool:
        return self.status in ENDED

    @property
    def stills(self) -> bool:
        """Whether no worker holds the run from then on, although it has not ended."""
        return self.status in STILL


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
"""Kind of event -> everything that holds for it everywhere."""

UNKNOWN = Kind(Unreadable, "unreadable", "worker")


def kind_of(name: str) -> Kind:
    """The row of a kind; of one that is not known here, a row that says so."""
    return KINDS.get(name, UNKNOWN)


@dataclass(frozen=True)
class Event:
    """`seq` counts a run's events from 1 without gaps."""

    seq: int
    kind: str
    payload: Payload
