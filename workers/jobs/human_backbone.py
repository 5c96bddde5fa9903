"""Rounds that a person writes: finds what was sent, puts it into the form of a reply, and says what would be misread.

A person's reply goes through the very grammar of an agent's (`agent/reply.py`), where a line may begin with a tag or
open a fence. What does not come back as it was written is refused before it is sent, and never repaired in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from experiments.core.display_name import person
from experiments.models import HumanReply, Run
from experiments.models.human_reply import What
from workers.protocols import Backbone
from workers.record import tasks

KEY = "person"
"""Of the backbone, in the registry."""

NO_PROGRAM = "There is no program yet. Write one, or insert an example."
NO_CONCLUSION = (
    "Write what you conclude: a description or a label. A unit that responds to nothing has the label “none”."
)
MISREAD = (
    "This would not be read as you wrote it: a line of it begins with a tag such as [CODE] or [LABEL], opens a fence "
    "of backticks, or says nothing. Put a word before it."
)

Listed = tuple[int, str, str, str]
"""A hypothesis: number, text, status, the figure that decides it."""


@dataclass(frozen=True)
class Written:
    """A reply in parts, each as plain text."""

    prose: str = ""
    hypotheses: tuple[Listed, ...] = ()
    program: str = ""
    description: str = ""
    reasoning: str = ""
    bias: str = ""
    labels: tuple[str, ...] = ()


def with_reply(backbone: Backbone, run: Run) -> Backbone:
    """The backbone with the reply of the next round, where a person has sent it."""
    from workers.backbones.person import PersonBackbone

    sent = run.human_replies.filter(round=run.rounds + 1, sent__isnull=False).select_related("author").first()
    return PersonBackbone(person(sent.author), text_of(sent)) if sent else backbone


def text_of(turn: HumanReply) -> str:
    """The reply in the grammar that every backbone writes."""
    return "\n\n".join(blocks(written(turn)))


def written(turn: HumanReply) -> Written:
    """What of a turn is sent: a program or a conclusion, never both."""
    about = Written(
        prose=tidy(turn.prose),
        hypotheses=tuple(
            (each["number"], in_line(each["text"]), each["status"], in_line(each["reason"])) for each in turn.hypotheses
        ),
    )
    if turn.what == What.EXPERIMENT:
        return replace(about, program=turn.program.rstrip().strip("\n"))
    told = {name: getattr(turn, name).strip() for name in ("description", "reasoning", "bias")}
    return replace(about, labels=tuple(filled(turn.labels)), **told)


def blocks(reply: Written) -> Iterator[str]:
    """The filled parts of a reply, each under its tag."""
    if reply.prose:
        yield reply.prose
    if reply.hypotheses:
        yield "[HYPOTHESIS LIST]:\n" + "\n".join(line(*each) for each in reply.hypotheses)
    if reply.program:
        fence = "`" * max(3, longest_run(reply.program, "`") + 1)
        yield f"[CODE]:\n{fence}python\n{reply.program}\n{fence}"
    for name in ("description", "reasoning", "bias"):
        if text := getattr(reply, name):
            yield f"[{name.upper()}]: {text}"
    yield from (f"[LABEL {n}]: {label}" for n, label in enumerate(reply.labels, 1))


def line(number: int, text: str, status: str, reason: str) -> str:
    return f"Hypothesis_{number}: {text} [{status}: {reason}]" if reason else f"Hypothesis_{number}: {text} [{status}]"


# --- what would be misread --------------------------------------------------------------------------


def problems(turn: HumanReply) -> dict[str, str]:
    """What keeps a turn from being sent: the name of a field -> why. Empty if it reads as it was written."""
    reply = written(turn)
    if turn.what == What.EXPERIMENT and not reply.program:
        return {"program": NO_PROGRAM}
    if turn.what == What.CONCLUSION and not (reply.description or reply.bias or reply.labels):
        return {"description" if "description" in tasks.named(turn.run.task).answer[:1] else "labels": NO_CONCLUSION}
    if comes_back(reply):
        return {}
    return {name: MISREAD for name in parts(reply) if not stands_alone(reply, name)} or {"prose": MISREAD}


def parts(reply: Written) -> list[str]:
    """Names of the parts that hold something."""
    return [each.name for each in fields(reply) if getattr(reply, each.name)]


def stands_alone(reply: Written, name: str) -> bool:
    """Whether this part comes back by itself, and leaves what follows it alone."""
    alone = Written(**{name: getattr(reply, name)})
    return comes_back(alone) and (name == "labels" or comes_back(replace(alone, labels=("what follows",))))


def comes_back(reply: Written) -> bool:
    """Whether the reply is parsed into the parts that it was made of."""
    from workers.agent.reply import parse

    found = parse("\n\n".join(blocks(reply)))
    conclusion = found.conclusion
    listed = tuple((each.number, each.text, each.status, each.reason) for each in found.hypotheses)
    told = {name: getattr(conclusion, name) if conclusion else "" for name in ("description", "bias")}
    reasons = conclusion.reasoning if conclusion else reply.reasoning  # reasoning alone concludes nothing
    return (
        found.prose == reply.prose
        and (conclusion is not None) == bool(reply.description or reply.bias or reply.labels)
        and [same(each) for each in listed] == [same(each) for each in reply.hypotheses]
        and (found.code or "") == reply.program
        and all(bare(told[name]) == bare(getattr(reply, name)) for name in told)
        and bare(reasons) == bare(reply.reasoning)
        and [bare(each) for each in (conclusion.labels if conclusion else ())] == meant(reply.labels)
    )


def same(listed: Listed) -> Listed:
    number, text, status, reason = listed
    return number, bare(text), status, bare(reason)


def meant(labels: tuple[str, ...]) -> list[str]:
    """The labels that a conclusion keeps: each once, and none that says that there is none."""
    from workers.agent.reply import parse

    read = [parse(f"[LABEL]: {label}").conclusion for label in labels]
    kept = [label for label, found in zip(labels, read, strict=True) if found is None or found.labels]
    return list({label.casefold(): bare(label) for label in kept}.values())


def bare(text: str) -> str:
    """Letters, digits and signs without the spaces and marks around them, which the grammar may trim."""
    return " ".join(re.sub(r"[*\"\s]+", " ", text).split()).strip(" -.:,;")


def tidy(text: str) -> str:
    """Prose as the grammar keeps it: no spaces at line ends, one blank line at most."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip()


def in_line(text: str) -> str:
    return " ".join(text.split())


def filled(text: str) -> list[str]:
    return [in_line(line) for line in text.split("\n") if line.strip()]


def longest_run(text: str, character: str) -> int:
    """The longest row of a character in a text."""
    longest = current = 0
    for each in text:
        current = current + 1 if each == character else 0
        longest = max(longest, current)
    return longest
