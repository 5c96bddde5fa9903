"""Build the conversation that the backbone sees from the events of a run. Pure: the same events, the same messages.

The backbone fits the conversation into its context window: it replaces images by their captions. Called by `loop`, and
by pages that show what the backbone saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from workers.agent import measurements
from workers.agent.instructions import quote, rounds_told
from workers.protocols import ImagePart, Message
from workers.record import grades
from workers.record.events import (
    Event,
    ExperimentEnded,
    Forked,
    Graded,
    LimitsChanged,
    Note,
    Reminder,
    Replied,
    Started,
)
from workers.record.experiments import ExperimentStatus, LogEntry, Observation
from workers.record.figures import format_activation
from workers.record.functions import measure_fit
from workers.record.limits import Limits
from workers.record.origins import Origin

Part = str | ImagePart

MAX_ERROR_CHARS = 6_000

_STATUS: dict[ExperimentStatus, tuple[str, str]] = {
    "ok": ("ok", ""),
    "program_error": ("program error", "Correct the program and send it again."),
    "tool_error": ("tool error", "The tool could not do what the program asked. Ask it differently."),
    "timeout": ("timeout", "The program was stopped because it took too long. Ask less of one program."),
    "memory": ("out of memory", "The program was stopped because it used too much memory. Hold fewer images at once."),
    "killed": ("killed", "The program was stopped because it did what the sandbox does not allow."),
}
"""Status -> first line of a result, and what to do about it."""

_SILENT = (
    "Nothing was logged and nothing was printed, so there is nothing to see. End the program with "
    "tools.log_experiment(…), or print what you want to know."
)
_NOTE = "A note from a person who follows this investigation. Take it into account:"
_READ = "How your reply was read:"
_GRADE_HEADER = "Your label was tested on images that you have not seen, and failed"
"""First words of the message about a label that failed."""
_GRADE_ADVICE = "Go on experimenting to find out what is wrong, then conclude again with a better label."
_UNTESTED_HEADER = "Your label could not be tested"
_UNTESTED_ADVICE = "Say it in words that can be tested, or keep it and say so: conclude again."
_ORDINARY = "Random ordinary images of the dataset, to compare with the exemplars (your program did not log them):"
_CUT = "[The output was cut here. Print less.]"


def messages(events: Sequence[Event], told: dict[int, tuple[Part, ...]] | None = None) -> list[Message]:
    """Return the conversation so far: instructions, assignment, then replies and their results in turn.

    `told` caches the text of each result by the number of its event; new results are added to it.
    """
    merged: list[Message] = []
    # The history only grows, so that providers can cache it: no later event changes an earlier message.
    for _, turn in turns(events, {} if told is None else told):
        # Providers want the roles to alternate.
        if merged and merged[-1].role == turn.role == "user":
            merged[-1] = Message("user", merged[-1].parts + turn.parts)
        else:
            merged.append(turn)
    return merged


def turns(events: Sequence[Event], told: dict[int, tuple[Part, ...]]) -> Iterator[tuple[Event, Message]]:
    """Yield the same turns before neighbours are merged, each with the event that it tells. `told` as above."""
    logged: dict[str, float] = {}
    for event in _sort_as_heard(events):
        if isinstance(event.payload, ExperimentEnded) and event.seq not in told:
            told[event.seq] = result_parts(event.payload, logged)
        for turn in _make_messages(event, told):
            yield event, turn
        # Only after its own text is made: a result is compared with earlier ones.
        if isinstance(event.payload, ExperimentEnded):
            logged.update({each.image: each.activation for each in event.payload.observations})


def _sort_as_heard(events: Sequence[Event]) -> Iterator[Event]:
    """Return the events in the order in which the agent hears them.

    Notes from before the start of a run come after its start; in a fork, after the copied events.
    """
    late: dict[int, list[Event]] = {}
    for event in events:
        if isinstance(event.payload, Replied):
            heard = event.payload.heard or event.seq
            # The author of the reply had not read notes that came while it was written, so they follow it.
            late[event.seq] = [said for said in events[heard : event.seq - 1] if _is_said(said)]
    begun = {type(event.payload): event for event in events if isinstance(event.payload, Started | Forked)}
    # Without a start there is no conversation yet to sort notes into.
    if Started in begun:
        early = [event for event in events[: begun[Started].seq] if _is_said(event)]
        # Notes from before the start follow it: the system message comes first.
        late[begun.get(Forked, begun[Started]).seq] = early
    moved = {event.seq for group in late.values() for event in group}
    for event in events:
        if event.seq not in moved:
            yield event
            yield from late.get(event.seq, ())


def result_parts(result: ExperimentEnded, earlier: Mapping[str, float] = MappingProxyType({})) -> tuple[Part, ...]:
    """Return what the agent reads of an experiment: each image follows the line that names it.

    `earlier` holds the activations of images that earlier experiments logged, by key.
    """
    name, advice = _STATUS[result.status]
    parts: list[Part] = [f"Experiment {result.number}: {name}"]
    parts += [line for line in (_shorten(result.error), advice) if line]
    parts += _list_parts(result.entries)
    parts += measurements.lines(result, earlier)
    # The program did not log these images, so they come after all that it did log.
    parts += _ordinary_parts(result.ordinary_images)
    if result.output:
        parts.append("Output:\n" + result.output.rstrip("\n"))
    if result.output_truncated:
        parts.append(_CUT)
    # Only if it ended well: an error is something to see.
    if result.status == "ok" and not result.entries and not result.output:
        parts.append(_SILENT)
    if result.rounds is not None:
        parts.append(rounds_told(result.round, Limits(rounds=result.rounds)))
    # Merge neighbouring lines of text.
    joined: list[Part] = []
    for part in parts:
        if joined and isinstance(part, str) and isinstance(joined[-1], str):
            joined[-1] = f"{joined[-1]}\n{part}"
        else:
            joined.append(part)
    return tuple(joined)


def _grade_parts(grade: Graded) -> tuple[Part, ...]:
    """Return what the agent reads of a label that is sent back: verdict, reason, then the most telling images."""
    label = " ".join(grade.label.split())
    if grade.reason:
        lines = [f"{_UNTESTED_HEADER}: {label}", grade.reason, grade.reading, _UNTESTED_ADVICE]
        return ("\n".join(line for line in [*lines, grades.describe_rest(grade)] if line),)
    figures = map(str, grades.list_figures(grade))
    lines = [f"{_GRADE_HEADER}: {label}", grade.reading, grades.describe_direction(grade), *figures]
    lines += ["The images that tell most:"] if grade.images else []
    parts: list[Part] = ["\n".join(line for line in lines if line)]
    for number, observation in enumerate(grade.images, 1):
        line = _line(number, observation, {})
        parts += [line, ImagePart(observation.masked or observation.image, line)]
    return (*parts, f"{_GRADE_ADVICE} {grades.describe_rest(grade)}")


def _make_messages(event: Event, told: Mapping[int, tuple[Part, ...]]) -> Iterator[Message]:
    match payload := event.payload:
        case Started():
            yield Message("system", (payload.instructions,))
            yield Message("user", (payload.assignment,))
        case Replied():
            # Providers refuse a turn without text.
            words = payload.text or "(an empty reply)"
            yield Message("assistant", (words,), payload.image_limit, payload.reasoning_items)
            if payload.readings:
                yield Message("user", (" ".join([_READ, *payload.readings]),))
        case ExperimentEnded():
            yield Message("user", told[event.seq])
        case Reminder():
            yield Message("user", (payload.text,))
        case Graded() if payload.goes_back:
            # A label that passed ends the run, so the agent hears only of those that are sent back.
            yield Message("user", _grade_parts(payload))
        case Note():
            yield Message("user", (f"{_NOTE}\n{quote(payload.text)}",))
        case LimitsChanged():
            change = f"it may take {payload.limits.rounds} rounds in all"
            if payload.limits.rounds is None:
                change = "there is no limit to its rounds any more"
            yield Message("user", (f"The limits of this investigation have changed: {change}.",))


def _is_said(event: Event) -> bool:
    """True if a person said it to the agent."""
    return isinstance(event.payload, Note | LimitsChanged)


def _list_parts(entries: Sequence[LogEntry]) -> Iterator[Part]:
    """List entries in the order in which they were logged; image numbers run through all entries."""
    places: dict[str, int] = {}
    shown: dict[str, int] = {}
    listed: set[tuple[str, str]] = set()
    number = 0
    for entry in entries:
        for place, sample in enumerate(entry.samples, number + 1):
            yield f"{place}. {sample.input} → {sample.output}"
        number += len(entry.samples)
        for name, words in measure_fit(entry.samples).items():
            yield f"{name} {words}."
        for observation in entry.observations:
            number += 1
            # The mask is what the agent sees of a unit; without one the image itself.
            key = observation.image if observation.plain else observation.masked or observation.image
            line = _line(number, observation, places)
            # The first place counts: an edit refers to where its original was first shown.
            places.setdefault(observation.image, number)
            # An image that occurs again, such as the original of several edits, costs tokens but tells nothing new.
            if key not in shown:
                yield line
                yield ImagePart(key, line, observation.origin == Origin.EXEMPLAR)
            elif (key, observation.title) not in listed:
                yield f"{line} (the same image as {shown[key]})"
            shown.setdefault(key, number)
            # With its title, so that the same image under another title is named again.
            listed.add((key, observation.title))
        if entry.text:
            yield f"Notes: {entry.text}"


def _ordinary_parts(images: Sequence[Observation]) -> Iterator[Part]:
    """List ordinary images, without numbers since the program did not log them."""
    if images:
        yield _ORDINARY
    for each in images:
        line = f"{each.title} — activation {format_activation(each.activation)}"
        yield line
        yield ImagePart(each.masked or each.image, line)


def _line(number: int, observation: Observation, places: dict[str, int]) -> str:
    title = " ".join(observation.title.split()) or "untitled"
    line = f"{number}. {title} — activation {format_activation(observation.activation)}"
    source = places.get(observation.original or "")
    return f"{line} (edited from {source})" if source else line


def _shorten(error: str) -> str:
    """Shorten a long error by cutting its middle."""
    if len(error) <= MAX_ERROR_CHARS:
        return error.strip()
    # The first and last lines of a traceback say most.
    half = MAX_ERROR_CHARS // 2
    return f"{error[:half].strip()}\n[… {len(error) - 2 * half:,} characters left out …]\n{error[-half:].strip()}"
