"""The events of a run: what happened, in order, and nothing else. Everything shown or counted derives from them.

A run's events are a list of `Event`, each with a payload of one class below. Payloads travel as plain JSON
(`to_json`, `from_json`); images appear as keys only. Who reads them: `conversation` (for the backbone), `loop` (for
the next step), and the web's templates (as JSON; field names are therefore part of the contract).

    started ─► reply ─► experiment ─► result ─► [note] ─► reply ─► … ─► concluded | limit_reached | cancelled | failed
                  └─► halted | paused | awaited ─► resumed | reply ─► (the step that was due)

A person's remark, new limits and a new author of the replies may come at any place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import msgspec

from workers.protocols import ExperimentStatus, Json, LogEntry, OrdinaryActivations, SystemSpec, ToolCall, Usage

HypothesisStatus = Literal["open", "supported", "refuted"]
Task = Literal["describe", "bias", "spurious", "free"]


@dataclass(frozen=True)
class Limits:
    """What a run may use before it is asked for its best conclusion. None means no limit."""

    rounds: int | None = 25
    tokens: int | None = 1_000_000
    cost: float | None = 5.0
    """US dollars."""
    seconds: float | None = 3600.0
    """Seconds of work, not counting waits between rounds."""


@dataclass(frozen=True)
class Hypothesis:
    number: int
    text: str
    status: HypothesisStatus = "open"
    reason: str = ""
    """The figure that decides it, in the agent's words."""


@dataclass(frozen=True)
class Conclusion:
    """What the agent says in the end. Which fields are filled depends on the task."""

    description: str = ""
    labels: tuple[str, ...] = ()
    reasoning: str = ""
    bias: str = ""


@dataclass(frozen=True)
class Started:
    """The first event: everything the agent was told, so that a run can be read without the code of its day."""

    question: str
    task: Task
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


@dataclass(frozen=True)
class Replied:
    """A reply of the backbone, parsed when it was recorded."""

    round: int
    author: str
    """The backbone's label."""
    text: str
    """The reply, whole."""
    prose: str
    """The reply without its tagged blocks."""
    hypotheses: tuple[Hypothesis, ...] = ()
    code: str | None = None
    conclusion: Conclusion | None = None
    usage: Usage = Usage()  # noqa: RUF009  frozen, so one for all will do
    seconds: float = 0.0
    captions: int = 0
    """Images that gave way to their captions because the conversation outgrew the context window."""
    heard: int = 0
    """The last event that its author knew; remarks made while it was written come after it."""
    by_person: bool = False
    """Whether a person wrote it."""
    setbacks: tuple[str, ...] = ()
    """What came between the question and the reply, in sentences for people."""
    reasoning: str = ""
    """What the model thought before it replied. Kept for people; the agent is not shown it again."""
    tags: tuple[str, ...] = ()
    """The tags of the conclusion that have words behind them; LABEL too where these say that there is none."""
    readings: tuple[str, ...] = ()
    """How the reply was read where it was not plain, in sentences that its author is told."""


@dataclass(frozen=True)
class ExperimentStarted:
    round: int
    number: int
    """Counts the run's experiments from 1."""
    code: str


@dataclass(frozen=True)
class ExperimentEnded:
    """`threshold` is the mean activation of the exemplars, once known; activations below it are weak."""

    round: int
    number: int
    status: ExperimentStatus
    entries: tuple[LogEntry, ...] = ()
    output: str = ""
    output_truncated: bool = False
    error: str = ""
    seconds: float = 0.0
    tool_seconds: float = 0.0
    calls: tuple[ToolCall, ...] = ()
    threshold: float | None = None
    usage: Usage = Usage()  # noqa: RUF009
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


@dataclass(frozen=True)
class Noted:
    """Our words to the agent between rounds. `reason` is the name of the prompt they came from."""

    round: int
    reason: Literal["continue", "reminder", "conclude_again", "incomplete", "set_aside", "last_words"]
    text: str
    usage: Usage = Usage()  # noqa: RUF009
    """What a reply took that did not come about, where that is why it is said."""


@dataclass(frozen=True)
class Troubled:
    """Our machinery broke and the step will be tried again. Shown to people, never to the agent."""

    round: int
    attempt: int
    what: str
    provider: bool = False
    """Whether the backbone's provider is behind it: the last attempt then leaves the run waiting, not failed."""


@dataclass(frozen=True)
class Halted:
    """The run waits for a person: a provider refuses or stays away, or a part is missing. Nothing is lost by it."""

    round: int
    reason: str
    """What is wrong and how to put it right."""
    usage: Usage = Usage()  # noqa: RUF009
    """What the reply took that did not come about."""


@dataclass(frozen=True)
class Paused:
    """A person paused the run between two rounds. `round` is the last one played."""

    round: int
    who: str


@dataclass(frozen=True)
class Resumed:
    """A person had a run go on that was paused, waited, failed or was stopped. Attempts are counted anew from here."""

    round: int
    who: str


@dataclass(frozen=True)
class Remarked:
    """What a person tells the agent. The backbone reads it as part of its next message, without the name."""

    round: int
    who: str
    text: str


@dataclass(frozen=True)
class Relimited:
    """A person changed the limits: from here on these hold."""

    round: int
    who: str
    why: str
    limits: Limits
    before: Limits | None = None
    """Those that held until then."""


@dataclass(frozen=True)
class Handed:
    """From the next reply on another backbone writes: an agent in a person's stead, or the other way round."""

    round: int
    who: str
    backbone: str
    """A key of the registry."""
    backbone_model: str = ""
    label: str = ""
    """What people call it."""


@dataclass(frozen=True)
class Awaited:
    """A person writes the reply of this round, and it is not there yet."""

    round: int


@dataclass(frozen=True)
class Forked:
    """Everything before was copied from another run, up to the end of `round`; from here on this run is its own."""

    round: int
    who: str
    run: int
    """The run it comes from."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """What differs from it, in words: name -> value."""


@dataclass(frozen=True)
class Ended:
    """The end. `reason` is a sentence a person can act on; `conclusion` is empty unless the agent gave one."""

    reason: str = ""
    conclusion: Conclusion = Conclusion()
    usage: Usage = Usage()  # noqa: RUF009
    """What a reply took that did not come about."""


Payload = (
    Started
    | Replied
    | ExperimentStarted
    | ExperimentEnded
    | Noted
    | Troubled
    | Halted
    | Paused
    | Resumed
    | Remarked
    | Relimited
    | Handed
    | Awaited
    | Forked
    | Ended
)

PAYLOADS: Mapping[str, type[Payload]] = {
    "started": Started,
    "reply": Replied,
    "experiment": ExperimentStarted,
    "result": ExperimentEnded,
    "note": Noted,
    "trouble": Troubled,
    "halted": Halted,
    "paused": Paused,
    "resumed": Resumed,
    "remark": Remarked,
    "limits": Relimited,
    "handed": Handed,
    "awaited": Awaited,
    "forked": Forked,
    "concluded": Ended,
    "limit_reached": Ended,
    "cancelled": Ended,
    "failed": Ended,
}
"""Kind of event -> class of its payload."""

ENDS = frozenset({"concluded", "limit_reached", "cancelled", "failed"})
"""Kinds that end a run; each is also the run's status from then on."""


@dataclass(frozen=True)
class Event:
    """`seq` counts a run's events from 1 without gaps."""

    seq: int
    kind: str
    payload: Payload


def to_json(payload: Payload) -> Json:
    """Plain JSON of a payload."""
    return msgspec.to_builtins(payload)


def from_json(kind: str, data: Json) -> Payload:
    """The payload of an event of this kind. Raises msgspec.ValidationError if it is not one."""
    return msgspec.convert(data, PAYLOADS[kind])


class Notebook(Protocol):
    """Where a run is written down, step by step. The loop's only way to the outside.

    The database is one (`jobs.notebook`), a list in memory another (`agent.memory`).
    """

    def events(self) -> Sequence[Event]:
        """All events so far, in order."""
        ...

    def append(self, kind: str, payload: Payload, *, state: bytes = b"") -> Event:
        """Record one step, whole or not at all. `state` is what an experiment leaves to the next.

        Raises LeaseLost if another worker holds the run by now.
        """
        ...

    def state(self) -> bytes:
        """What the last recorded experiment left."""
        ...

    def seconds(self) -> float:
        """Seconds of work on this run so far, the present round included."""
        ...

    def draft(self, text: str) -> None:
        """Show the reply under way, whole so far; empty clears it. Cheap to call for every word."""
        ...

    def progress(self, what: str, done: int, total: int) -> None:
        """Show what long work is doing. Raises Cancelled if the run was stopped."""
        ...

    def cancelled(self) -> bool:
        """Whether a person stopped the run. Cheap to call often."""
        ...

    def watched(self) -> bool:
        """Whether anybody reads the draft as it grows. Cheap to call often."""
        ...

    def pausing(self) -> str:
        """Who wants the run paused before its next round, "" if nobody does."""
        ...
