"""Read a conversation: the question, the experiments that were run, their results.

Uses only the text of the conversation. Other authors and programs wrote it, so an odd line is skipped, and none is
trusted to be more than words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from workers.protocols import ImagePart, Message

_TASK = re.compile(r"^#* ?Task: (describe|bias|spurious|free)\s*$", re.MULTILINE)
_QUESTION = re.compile(r"^> ?(.*)$", re.MULTILINE)
_HEADER = re.compile(r"^Experiment (\d+): ([a-z ]+)$", re.MULTILINE)
# The dashes and forms are those of the experiment log: a change there must be repeated here
_OBSERVATION = re.compile(r"^(\d+)\. (.*) — activation (-?\d+(?:\.\d+)?(?:e-\d+)?)(?: \(edited from (\d+)\))?$")
_EXEMPLAR_MEAN = re.compile(r"^Mean exemplar activation: (-?\d+(?:\.\d+)?(?:e-\d+)?)$", re.MULTILINE)
_HYPOTHESIS = re.compile(r"^Hypothesis_(\d+): (.*?)(?: \[(open|supported|refuted)(?:: (.*))?\])?$", re.MULTILINE)
_STEP = re.compile(r'^\s*"""Step (\w+):', re.MULTILINE)
_TOOL = re.compile(r"^### tools\.(\w+)\(", re.MULTILINE)
_GRADED = re.compile(r"^Your label was tested on images that you have not seen, and failed: .*$", re.MULTILINE)
# From the prompt that asks for the final answer
_LAST_WORDS = "No more experiments will be run"
GRADED, NO_EXPERIMENT = "graded", 0
"""Step and number for the result of a label's test, which is read like an experiment."""


@dataclass(frozen=True)
class ReportedImage:
    """One observation as the conversation reports it. `source` is the position of the image it was edited from."""

    place: int
    title: str
    activation: float
    source: int | None = None


@dataclass(frozen=True)
class ExperimentReport:
    """The result of one experiment."""

    number: int
    status: str
    step: str
    """The step that its program names; empty for a program by another author."""
    seen: tuple[ReportedImage, ...] = ()
    notes: tuple[str, ...] = ()
    """First lines of the texts that were logged."""


@dataclass(frozen=True)
class ReportedHypothesis:
    """A line of a list with its status."""

    number: int
    text: str
    status: str = "open"
    reason: str = ""


@dataclass(frozen=True)
class ConversationState:
    """Everything the scientist knows."""

    task: str = "describe"
    question: str = ""
    reports: tuple[ExperimentReport, ...] = ()
    exemplar_mean: float | None = None
    """Mean activation of the exemplars, once seen."""
    hypotheses: tuple[ReportedHypothesis, ...] = ()
    """As last written by any author, including refuted ones."""
    must_conclude: bool = False
    """The last message asks for the final answer."""
    tools: frozenset[str] = frozenset()
    """Names of the tools that the reference lists; empty if there is no reference."""

    def has(self, tool: str) -> bool:
        """True if programs may call a tool. Without a reference, any may be tried."""
        return not self.tools or tool in self.tools

    def tried(self, step: str) -> int:
        """Return how many experiments of this step were run, including failed ones."""
        return sum(report.step == step for report in self.reports)

    def done(self, step: str) -> int:
        """Return how many experiments of this step succeeded or left observations."""
        return sum(report.step == step and (bool(report.seen) or report.status == "ok") for report in self.reports)


def read_conversation(messages: Sequence[Message]) -> ConversationState:
    """Return the case as the conversation tells it, from the first message to the last."""
    reports: list[ExperimentReport] = []
    hypotheses: dict[int, ReportedHypothesis] = {}
    exemplar_mean: float | None = None
    task, question, step = "", "", ""
    for message in messages:
        # Captions replace images that were left out
        text = "\n".join(part.caption if isinstance(part, ImagePart) else part for part in message.parts)
        # 1. The task and question: only of the first message that has one
        if message.role == "user" and not task and (assigned := _TASK.search(text)):
            task, question = assigned.group(1), "\n".join(_QUESTION.findall(text))
        # 2. The assistant's: the step of its program, and its hypotheses, where later lines replace earlier ones
        if message.role == "assistant":
            found = _STEP.search(text)
            step = found.group(1) if found else ""
            for number, words, status, reason in _HYPOTHESIS.findall(text):
                hypotheses[int(number)] = ReportedHypothesis(int(number), words.strip(), status or "open", reason)
        # 3. The user's: the result belongs to the step of the program before it
        elif message.role == "user" and (report := _report(text, step)):
            reports.append(report)
            mean = _EXEMPLAR_MEAN.search(text)
            # The latest mean is kept when later experiments show no exemplars
            exemplar_mean = float(mean.group(1)) if mean else exemplar_mean
    # 4. Only the last part of the last message can ask for the conclusion: earlier ones were answered
    last = messages[-1].parts[-1] if messages and messages[-1].role == "user" and messages[-1].parts else ""
    must_conclude = isinstance(last, str) and _LAST_WORDS in last
    listed = tuple(hypotheses.values())
    told = "\n".join(message.text for message in messages if message.role == "system")
    return ConversationState(
        task or "describe",
        question,
        tuple(reports),
        exemplar_mean,
        listed,
        must_conclude,
        frozenset(_TOOL.findall(told)),
    )


def _report(text: str, step: str) -> ExperimentReport | None:
    """Return the result that a message reports; None if it reports none."""
    # A failed label's test has the same lines as an experiment
    header = _HEADER.search(text) or _GRADED.search(text)
    if header is None:
        return None
    if header.re is _GRADED:
        images = {image.place: image for line in text[header.end() :].splitlines() if (image := _image(line))}
        return ExperimentReport(NO_EXPERIMENT, "ok", GRADED, tuple(images.values()))
    seen: dict[int, ReportedImage] = {}
    notes: list[str] = []
    for line in text[header.end() :].splitlines():
        if line == "Output:":  # whatever the program printed is no result
            break
        if image := _image(line):
            # An image's caption repeats the line before it.
            seen.setdefault(image.place, image)
        elif line.startswith("Notes: "):
            notes.append(line.removeprefix("Notes: "))
    return ExperimentReport(int(header.group(1)), header.group(2), step, tuple(seen.values()), tuple(notes))


def _image(line: str) -> ReportedImage | None:
    """Return the observation that a line reports; None if it reports none."""
    if match := _OBSERVATION.match(line):
        place, title, activation, source = match.groups()
        return ReportedImage(int(place), title, float(activation), int(source) if source else None)
    return None
