"""Print a run's transcript as text in a terminal. Pages have their own renderer."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import asdict, dataclass, field
from threading import Event as Flag
from typing import TextIO

from experiments.models import Run
from workers.jobs.images import ImagesInDatabase
from workers.jobs.run_log import DatabaseRunLog
from workers.record import events, grades, limits
from workers.record.bias_tests import BiasTest
from workers.record.events import Event, ExperimentEnded, Payload
from workers.record.figures import format_activation
from workers.record.tasks import FUNCTION
from workers.record.terminal import escape_controls

WIDTH = 100


class ConsoleRunLog(DatabaseRunLog):
    """The run log in the database, which also prints each step."""

    def __init__(self, run: Run, images: ImagesInDatabase, lost: Flag, console: Console) -> None:
        super().__init__(run, images, lost)
        self.console = console

    def append(self, kind: str, payload: Payload, *, state: bytes = b"") -> Event:
        event = super().append(kind, payload, state=state)
        self.console.show(event)
        return event

    def record_copied(self) -> None:
        for event in self.read().events:
            if isinstance(event.payload, events.Started | events.Forked | events.Note):
                self.console.show(event)

    def draft(self, text: str) -> None:
        if text:
            self.console.line(f"The backbone is writing: {len(text.split())} words")

    def progress(self, what: str, done: int, total: int) -> None:
        super().progress(what, done, total)
        self.console.line(f"{what}: {done} of {total}" if total > 1 else what)


@dataclass
class Console:
    """Streams of the transcript and of the progress line, which is shown only in a terminal."""

    transcript: TextIO
    terminal: TextIO = field(default_factory=lambda: sys.stderr)

    def line(self, text: str) -> None:
        """Replace the progress line."""
        # Control sequences would spoil a redirected output
        if self.terminal.isatty():
            # Escaped: text of a model must not steer the terminal.
            print(f"\r\033[K{escape_controls(text)[:WIDTH]}", end="", file=self.terminal, flush=True)

    def show(self, event: Event) -> None:
        self.line("")
        print(escape_controls(format_event(event.payload, event.kind)), file=self.transcript, flush=True)


def format_event(payload: Payload, kind: str) -> str:
    """Return one event as text."""
    match payload:
        case events.Started():
            noun = "function" if payload.system.kind == FUNCTION else "unit"
            place = f"{payload.system.model} / {payload.system.layer} / {noun} {payload.system.unit}"
            return f"{payload.question}\n{place}\n"
        case events.Replied():
            told = [*payload.provider_errors, *([_format_captions(payload)] if payload.captions else [])]
            return (
                heading(f"Round {payload.round}", payload.author) + "".join(map(set_aside, told)) + payload.text + "\n"
            )
        case events.ExperimentStarted():
            return f"Experiment {payload.number} runs …"
        case events.ExperimentEnded():
            return _format_result(payload)
        case events.Reminder() | events.Retrying():
            return set_aside(payload.text if isinstance(payload, events.Reminder) else payload.what)
        case events.Blocked():
            return heading("Needs attention", "") + textwrap.fill(payload.reason, WIDTH) + "\n"
        case events.Graded():
            return _format_grade(payload)
        case events.Ended():
            answer = payload.conclusion
            parts = [answer.description, answer.reasoning, answer.bias, *(f"Label: {label}" for label in answer.labels)]
            parts += [f"Domain: {answer.domain}" * bool(answer.domain), answer.code]
            parts += map(_format_test, payload.biases)
            return heading(title_of(kind), payload.reason) + "\n".join(part for part in parts if part)
        case _:
            return _format_steering(payload, kind)


def _format_steering(payload: Payload, kind: str) -> str:
    """Return what a person did to the run: a sentence, or the texts of the event under its kind and author."""
    match payload:
        case events.Resumed():
            return f"{payload.who} resumed the run.\n"
        case events.LimitsChanged():
            return f"{payload.who} changed the limits: {limits.format_limits(asdict(payload.limits))}. {payload.why}\n"
        case events.HandedOver():
            return f"{payload.who} handed the run to {payload.label or payload.backbone}.\n"
        case events.Forked():
            return f"Forked from run {payload.run} after round {payload.round}.\n"
        case events.WaitingForPerson():
            return f"Round {payload.round} is a person's to write, on the run's page.\n"
    # Any other kind of event is shown by its texts
    texts = {name: value for name, value in vars(payload).items() if isinstance(value, str) and value}
    who = texts.pop("who", "")
    return heading(title_of(kind), who) + "".join(textwrap.indent(text, "  | ") + "\n" for text in texts.values())


def _format_test(test: BiasTest) -> str:
    """Describe what the images of a run show about a bias that it states."""
    if test.effect is None:
        return f"Not tested: “{test.context}”. {test.why}"
    verdict, images = "Holds" if test.holds else "Does not hold", "new images" if test.fresh else "what suggested it"
    return f"{verdict} on {images}: “{test.context}”, effect {test.effect:.2f}, corrected p {test.adjusted_p:.2g}"


def _format_captions(reply: events.Replied) -> str:
    """Describe how many images were removed, and why."""
    images = "1 earlier image was" if reply.captions == 1 else f"{reply.captions} earlier images were"
    return f"{images} left out: {reply.captions_reason or 'the conversation outgrew the context window'}."


def _format_grade(grade: events.Graded) -> str:
    lines = [grade.label, grade.reason, grade.reading, grades.describe_direction(grade)]
    lines += [str(each) for each in grades.list_figures(grade)]
    return heading("Graded", grades.name_verdict(grade)) + "".join(f"  {line}\n" for line in lines if line)


def title_of(kind: str) -> str:
    return kind.replace("_", " ").capitalize()


def set_aside(words: str) -> str:
    return textwrap.indent(textwrap.fill(words, WIDTH), "  | ") + "\n"


def heading(title: str, note: str) -> str:
    return f"── {title}{' · ' + note if note else ''} ".ljust(WIDTH, "─") + "\n"


def _format_result(result: ExperimentEnded) -> str:
    seconds = result.seconds + result.tool_seconds
    lines = [f"Experiment {result.number}: {result.status.replace('_', ' ')}, {seconds:.1f} s"]
    for entry in result.entries:
        for each in entry.observations:
            # The logged value, if it differs from the measured one
            claim = (
                f"  (logged with {format_activation(each.claimed)})"
                if each.differs and each.claimed is not None
                else ""
            )
            lines.append(f"  {format_activation(each.activation):>10}  {each.title}{claim}")
        lines += [textwrap.indent(entry.text, "  ")] if entry.text else []
    lines += [f"  {format_activation(each.activation):>10}  {each.title}" for each in result.ordinary_images]
    lines += [textwrap.indent(text, "  ") for text in (result.output, result.error) if text]
    return "\n".join(lines) + "\n"
