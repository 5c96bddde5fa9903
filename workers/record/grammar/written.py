"""Replies that a person writes: composes the reply, and reports what the grammar would misread.

A person's reply goes through the same grammar as an agent's, in which a line may begin with a tag or open a fence.
Text that does not parse back as written is refused before it is sent and never silently repaired.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from workers.record import tasks
from workers.record.grammar.composing import Written, join_lines, write
from workers.record.grammar.reply import parse
from workers.record.replies import Hypothesis

NO_PROGRAM = "There is no program yet. Write one, or insert an example."
NO_CONCLUSION = (
    "Write what you conclude: a description or a label. A unit that responds to nothing has the label “none”."
)
MISREAD = (
    "This would not be read as you wrote it: a line of it begins with a tag such as [CODE] or [LABEL], opens a fence "
    "of backticks, or says nothing. Put a word before it. A label is one phrase, without quotation marks or counts."
)

ReplyFields = Mapping[str, Any]
"""What a person wrote, by the field names of `HumanReply`."""


def compose(draft: ReplyFields) -> str:
    """Return the reply in the grammar that every backbone writes."""
    return write(select(draft))


def select(draft: ReplyFields) -> Written:
    """Return the parts of a draft that are sent: a program or a conclusion, never both."""
    # Prose as the grammar keeps it: no spaces at line ends, one blank line at most
    about = Written(
        prose=re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in draft["prose"].split("\n"))).strip(),
        hypotheses=tuple(
            Hypothesis(each["number"], join_lines(each["text"]), each["status"], join_lines(each["reason"]))
            for each in draft["hypotheses"]
        ),
    )
    if draft["what"] == "experiment":
        # Only line ends: leading blanks of a program are indentation
        return replace(about, program=draft["program"].rstrip().strip("\n"))
    texts = {name: draft[name].strip() for name in ("description", "reasoning", "bias")}
    labels = tuple(join_lines(line) for line in draft["labels"].split("\n") if line.strip())
    return replace(about, labels=labels, **texts)


# --- what would be misread --------------------------------------------------------------------------


def find_problems(draft: ReplyFields, task: str) -> dict[str, str]:
    """Return why a draft cannot be sent, by field. Empty if it parses as written."""
    reply = select(draft)
    # 1. Is the part there that is to be sent?
    if draft["what"] == "experiment" and not reply.program:
        return {"program": NO_PROGRAM}
    if draft["what"] == "conclusion" and not (reply.description or reply.bias or reply.labels):
        # The task decides which field its answer begins with
        return {"description" if "description" in tasks.find_task(task).answer[:1] else "labels": NO_CONCLUSION}
    # 2. Does the whole parse back?
    if _is_parsed_back(reply):
        return {}
    # 3. If not, which field is to blame: each is tried alone
    filled = [each.name for each in fields(reply) if getattr(reply, each.name)]
    # Only together do they fail: the prose comes first, so it is named
    return {name: MISREAD for name in filled if not _is_independent(reply, name)} or {"prose": MISREAD}


def _is_independent(reply: Written, name: str) -> bool:
    """True if this part parses back by itself and does not change what follows it."""
    alone = Written(**{name: getattr(reply, name)})
    # A part may also swallow what follows it, such as an open fence
    return _is_parsed_back(alone) and (name == "labels" or _is_parsed_back(replace(alone, labels=("what follows",))))


def _is_parsed_back(reply: Written) -> bool:
    """True if the reply parses into the parts that it was made of."""
    # Compared with what the parser makes of it: no second grammar to keep in step
    found = parse(write(reply))
    conclusion = found.conclusion
    concluded = {name: getattr(conclusion, name) if conclusion else "" for name in ("description", "bias")}
    reasons = conclusion.reasoning if conclusion else reply.reasoning  # reasoning alone concludes nothing
    return (
        found.prose == reply.prose
        and (conclusion is not None) == bool(reply.description or reply.bias or reply.labels)
        and [_normalize(each) for each in found.hypotheses] == [_normalize(each) for each in reply.hypotheses]
        and (found.code or "") == reply.program
        and all(_strip_marks(concluded[name]) == _strip_marks(getattr(reply, name)) for name in concluded)
        and _strip_marks(reasons) == _strip_marks(reply.reasoning)
        and [_strip_marks(each) for each in (conclusion.labels if conclusion else ())] == _keep_labels(reply.labels)
    )


def _normalize(each: Hypothesis) -> Hypothesis:
    return replace(each, text=_strip_marks(each.text), reason=_strip_marks(each.reason))


def _keep_labels(labels: tuple[str, ...]) -> list[str]:
    """Return the labels that a conclusion keeps: without repeats, and without those that say that there is none."""
    read = [parse(f"[LABEL]: {label}").conclusion for label in labels]
    # "none" is a label for a person and none for the parser
    kept = [label for label, found in zip(labels, read, strict=True) if found is None or found.labels]
    return list({label.casefold(): _strip_marks(label) for label in kept}.values())


def _strip_marks(text: str) -> str:
    """Return the words without the spaces and marks that the grammar may trim."""
    # The parser trims marks; that is no misreading
    return " ".join(re.sub(r"[*\"\s]+", " ", text).split()).strip(" -.:,;")
