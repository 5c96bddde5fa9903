"""The agent's loop: ask, parse, run, record. Each call executes one round.

`rules` decides the next step; this module takes it and records it in the run log. It knows no database, no model and no
sandbox. Called by `workers.jobs` and by the command line.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

from PIL.Image import Image

from workers.agent import rules
from workers.agent.conversation import messages
from workers.agent.instructions import Known, assignment, choose_example, render
from workers.agent.run_log import RunLog
from workers.errors import (
    AwaitsPerson,
    BackboneRefused,
    BackboneUnavailable,
    Cancelled,
    LeaseLost,
    MachineryError,
    MissingPart,
    Outage,
    RequestError,
    TimeIsUp,
    UnknownName,
)
from workers.protocols import Backbone, ExperimentResult, StatusNote, usage_of
from workers.record.events import (
    Blocked,
    Ended,
    Event,
    ExperimentEnded,
    Graded,
    Paused,
    Replied,
    Retrying,
    Started,
    WaitingForPerson,
)
from workers.record.experiments import LogEntry, Observation
from workers.record.grammar.called import drop_denials, write_out
from workers.record.grammar.composing import strip_unstorable
from workers.record.grammar.reply import parse
from workers.record.grammar.schemas import list_functions
from workers.record.limits import Limits, Usage, check, without_price
from workers.record.replies import FunctionCall
from workers.record.systems import OrdinaryActivations, SystemSpec
from workers.record.tasks import FUNCTION, TASKS, explain_mismatch

log = logging.getLogger(__name__)

T = TypeVar("T")

STREAM_IDLE_TIMEOUT = 10.0
"""After the time limit, a reply is given up if no text comes for this many seconds."""


@dataclass(frozen=True)
class ProgramOutcome:
    """The result of a program: what the sandbox returned, and what the tools logged before it ended."""

    result: ExperimentResult
    entries: tuple[LogEntry, ...] = ()
    exemplar_mean: float | None = None
    """Mean activation of the exemplars, if known."""
    usage: Usage = Usage()  # noqa: RUF009  frozen, so it can be shared
    """Usage for describing images, where a language model does it."""
    measured: int = 0
    """Images that the system measured, logged or not."""
    best: float | None = None
    """The highest activation among images that are not exemplars."""
    ordinary: OrdinaryActivations | None = None
    """Activations of ordinary images of the dataset, if known."""
    ordinary_images: tuple[Observation, ...] = ()
    """Some ordinary images, in the run's first experiment."""


class Runner(Protocol):
    def __call__(self, code: str, number: int, state: bytes) -> ProgramOutcome:
        """Run the program of experiment `number`; `state` is what the previous experiment left.

        Raises Cancelled, LeaseLost; any other exception is a failure of our machinery.
        """


class Grader(Protocol):
    def __call__(self, step: rules.Grade) -> Graded:
        """Test labels on images that the agent never saw. A label that cannot be tested gets a reason, not an error.

        Raises Cancelled, LeaseLost; any other exception is a failure of our machinery.
        """


@dataclass(frozen=True)
class RoundContext:
    """What a round needs."""

    run_log: RunLog
    backbone: Backbone
    run_program: Runner
    load: Callable[[str], Image]
    """Loads an image by key."""
    grade: Grader


def start(
    question: str,
    task: str,
    system: SystemSpec,
    *,
    backbone: str,
    limits: Limits,
    seed: int,
    reference: str,
    versions: Mapping[str, str],
    known: Known = Known(),  # noqa: B008  frozen, so it can be shared
    reflections: int = 0,
) -> Started:
    """Return the first event of a run. `reference` is the API text shown to the agent, `backbone` a key of the
    registry.

    Raises RequestError for an invalid question or limit, UnknownName for an unknown task.
    """
    if task not in TASKS:
        raise UnknownName(f"There is no task {task!r}. Choose one of: {', '.join(TASKS)}.")
    if problem := explain_mismatch(task, system.kind):
        raise RequestError(problem)
    check(limits)
    return Started(
        question=question,
        task=task,
        system=system,
        backbone=backbone,
        limits=limits,
        seed=seed,
        instructions=render(
            "system_function" if system.kind == FUNCTION else "system",
            reference=reference,
            example=choose_example(reference, "text2image", "dataset_exemplars"),
        ),
        assignment=assignment(task, question, system, limits, known),
        reference=reference,
        versions=versions,
        reflections=reflections,
    )


def _refuse_to_grade(step: rules.Grade) -> Graded:
    """Return the grade for installations where no label can be tested."""
    return Graded(step.round, " OR ".join(step.labels), left=step.left, reason="Labels cannot be tested here.")


def run_agent(
    run_log: RunLog,
    backbone: Backbone,
    run_program: Runner,
    load: Callable[[str], Image],
    grade: Grader = _refuse_to_grade,
) -> bool:
    """Take steps until the next reply is due. Returns True if the run continues, False if it has ended, is paused or
    waits.

    Raises MachineryError if a step failed and should be retried later, LeaseLost.
    """
    context = RoundContext(run_log, backbone, run_program, load, grade)
    moved = False
    while step := rules.next_step(run_log.read(), run_log.seconds()):
        if isinstance(step, rules.Ask):
            # One round a call, so that a worker can serve other runs in between.
            if moved:
                return True
            # Only between rounds: a pause in the middle would lose the reply under way.
            if who := run_log.pausing():
                run_log.append("paused", Paused(step.round - 1, who))
                return False
        # Each step is recorded at once: a killed run continues at the first step that is not recorded.
        attempt(run_log, round_of(step), partial(_take_step, step, context))
        moved = True
    return False


def attempt(run_log: RunLog, round_number: int, work: Callable[[], T]) -> T | None:
    """Do a piece of the run's work. Returns None if it failed; the reason and what follows are then recorded.

    Raises MachineryError if it should be retried later, Outage if it has to be, LeaseLost.
    """
    try:
        return work()
    except (LeaseLost, Outage):
        raise
    except Cancelled as error:
        run_log.append("cancelled", Ended("A person stopped the run.", usage=usage_of(error)))
    except TimeIsUp as error:
        step = rules.out_of_time(run_log.read(), run_log.seconds(), usage_of(error))
        run_log.append(step.kind, step.payload)
    except AwaitsPerson:
        run_log.append("waiting_for_person", WaitingForPerson(round_number))
    except (BackboneRefused, BackboneUnavailable, MissingPart) as error:
        run_log.append("blocked", Blocked(round_number, str(error), usage_of(error)))
    except RequestError as error:
        run_log.append("failed", Ended(f"{error} Put this right, then start the run again."))
    except Exception as error:  # any other exception is a failure of our machinery
        if reason := run_log.explain_outage(error):
            raise Outage(reason) from error
        run_log.is_cancelled()  # raises LeaseLost where this worker ends: the failure is then not the run's
        _record_trouble(run_log, round_number, error)
    return None


def _take_step(step: rules.Step, context: RoundContext) -> Event:
    """Take one step and record it."""
    # Checked before the step: a person may have stopped the run while it waited.
    if context.run_log.is_cancelled():
        raise Cancelled("A person stopped the run.")
    match step:
        case rules.Ask():
            return ask(step, context)
        case rules.RunProgram():
            return run(step, context)
        case rules.Grade():
            return context.run_log.append("graded", context.grade(step))
        case rules.Record():
            return context.run_log.append(step.kind, step.payload)


def ask(step: rules.Ask, context: RoundContext) -> Event:
    """Ask the backbone, show the text as it comes, and record the reply."""
    run_log, run_state = context.run_log, context.run_log.known
    # Without a price a cost limit could never be reached.
    if problem := without_price(run_state.limits, context.backbone.label, context.backbone.price_known):
        raise BackboneRefused(problem)
    # Notes that come while the reply is written are added to the state; the reply does not know them
    began, heard = time.monotonic(), run_state.last_seq
    start = run_state.start
    offered = list_functions(start.task, start.system.layer, last=run_state.awaits_final_answer)
    # Only the latest message offers functions: they apply to the reply that follows.
    *earlier, latest = messages(run_state.events, run_state.told)
    try:
        reply = context.backbone.reply(
            [*earlier, replace(latest, functions=offered)],
            context.load,
            StreamedReply(run_log, rules.time_left(run_state, run_log.seconds())),
            start.seed,
        )
        # Providers send characters that the database refuses
        calls = tuple(FunctionCall(*map(strip_unstorable, (it.name, it.arguments, it.id))) for it in reply.calls)
        text, remarks = write_out(strip_unstorable(reply.text), calls, offered if reply.offered else ())
        parsed = parse(text)
        readings = drop_denials(parsed.readings) if reply.offered else parsed.readings
        return run_log.append(
            "reply",
            Replied(
                round=step.round,
                author=context.backbone.label,
                text=text,
                prose=parsed.prose,
                hypotheses=parsed.hypotheses,
                code=parsed.code,
                conclusion=parsed.conclusion,
                usage=reply.usage,
                seconds=time.monotonic() - began,
                captions=reply.captions,
                captions_reason=reply.captions_reason,
                image_limit=reply.image_limit,
                heard=heard,
                by_person=reply.by_person,
                provider_errors=tuple(map(strip_unstorable, reply.provider_errors)),
                reasoning=strip_unstorable(reply.reasoning) or parsed.reasoning,
                reasoning_items=reply.reasoning_items,
                tags=parsed.tags,
                readings=(*remarks, *readings),
                calls=calls,
            ),
        )
    finally:
        # Also after a failure: viewers must not keep a draft that no reply will replace
        run_log.draft("")


def run(step: rules.RunProgram, context: RoundContext) -> Event:
    """Run the program of an experiment and record its result, with all it logged before it ended."""
    run_log, experiment = context.run_log, step.experiment
    state, run_state = run_log.state(), run_log.known
    outcome = context.run_program(experiment.code, experiment.number, state)
    known, result = outcome.exemplar_mean, outcome.result
    ended = ExperimentEnded(
        round=experiment.round,
        number=experiment.number,
        status=result.status,
        entries=outcome.entries,
        output=result.output,
        output_truncated=result.output_truncated,
        error=result.error,
        seconds=result.seconds,
        tool_seconds=result.tool_seconds,
        calls=result.calls,
        # The latest that is known: a failed experiment may not have asked.
        exemplar_mean=run_state.exemplar_mean if known is None else known,
        usage=outcome.usage,
        measured=outcome.measured,
        best=max((each for each in (run_state.best, outcome.best) if each is not None), default=None),
        own=outcome.best is not None,
        ordinary=outcome.ordinary,
        ordinary_images=outcome.ordinary_images,
        rounds=run_state.limits.rounds,
    )
    # A program that leaves nothing, such as one that failed, keeps the earlier state for the next.
    return run_log.append("result", ended, state=result.state or state)


def _record_trouble(run_log: RunLog, round_number: int, error: Exception) -> None:
    """Record the failure. Raises it as a MachineryError, or after the last attempt records what follows."""
    what = str(error) if isinstance(error, MachineryError) else f"{type(error).__name__}: {error}."
    # Counted from the record, so that another worker goes on counting.
    tries = run_log.read().attempts + 1
    log.error("Attempt %d of %d failed.", tries, rules.ATTEMPTS, exc_info=error)
    # Recorded before it is raised, so that the count of attempts survives the end of this worker
    run_log.append("retrying", Retrying(round_number, tries, what))
    if tries < rules.ATTEMPTS:
        raise MachineryError(what) from error
    follows = rules.next_step(run_log.read(), run_log.seconds())
    assert isinstance(follows, rules.Record)
    run_log.append(follows.kind, follows.payload)


def round_of(step: rules.Step) -> int:
    """Return the round that a step belongs to; 0 for the run as a whole."""
    match step:
        case rules.Ask() | rules.Grade():
            return step.round
        case rules.RunProgram():
            return step.experiment.round
        case rules.Record():
            return getattr(step.payload, "round", 0)


class StreamedReply:
    """Collect the pieces of a reply, show them, and stop when a person stops the run or the time limit passes."""

    def __init__(self, run_log: RunLog, seconds: float = math.inf) -> None:
        """`seconds` is the time left for the reply."""
        self.run_log = run_log
        self.text = ""
        # Monotonic: the clock of the machine may be set while a reply comes.
        self.until = time.monotonic() + seconds
        self.aside = False

    def __call__(self, piece: str | StatusNote | None) -> None:
        """Take the next piece. None discards what came so far: the reply starts over."""
        if isinstance(piece, StatusNote):
            self.run_log.progress(piece.what, piece.done, piece.total)
            self.aside = True
        elif piece or piece is None:
            self._take(piece)
        # After the piece is taken, so that what came is shown.
        if self.run_log.is_cancelled():
            raise Cancelled("A person stopped the run.")
        if time.monotonic() >= self.until:
            raise TimeIsUp("The time is up.")

    def _take(self, piece: str | None) -> None:
        self.text = "" if piece is None else self.text + piece
        self.run_log.draft(self.text)
        if piece:
            # A reply that is being written may end after the time limit; a silent one may not
            self.until = max(self.until, time.monotonic() + STREAM_IDLE_TIMEOUT)
            if self.aside:
                self.run_log.progress("", 0, 0)
                self.aside = False
