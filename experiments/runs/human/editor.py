"""The editor of a person who writes the next round: the form and what surrounds it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.forms.boundfield import BoundField

from experiments.core import access, transcript
from experiments.core.compatibility import PERSON
from experiments.core.display_name import person
from experiments.core.errors import ActionRefused, InvalidFields, OutOfDate
from experiments.models import HumanReply, Role, Run
from experiments.runs.human import actions, drafts, reference
from experiments.runs.human.drafts import Values
from experiments.runs.human.forms import ANSWER, ReplyForm
from workers.record import tasks
from workers.record.events import Started

_LINE = re.compile(r'File "experiment\.py", line (\d{1,9})')
BLANK = {"number": "", "text": "", "status": "open", "reason": ""}


@dataclass(frozen=True)
class Failure:
    """The failed program of the round before: the line that the error names, 0 for none."""

    number: int
    error: str
    line: int


@dataclass(frozen=True)
class Editor:
    """The section under the transcript for one person. Without a `draft` it only reports what happened."""

    run: Run
    draft: HumanReply | None = None
    under_way: HumanReply | None = None
    """What was sent and is being executed."""
    late: str = ""
    """Who was first, if this person's draft was not sent."""
    left_over: HumanReply | None = None
    """A draft of an earlier round that can still be taken up."""
    final_answer: bool = False
    failure: Failure | None = None
    assignment: str = ""
    entries: Sequence[reference.Entry] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""
    """Why the sent text was not accepted."""
    unsent: Sequence[tuple[str, str]] = ()
    """The sent text that could not be kept as a draft: names and texts, to be copied."""
    kept: Sequence[tuple[str, str]] = ()
    """The draft as another tab left it, if the form shows this tab's."""
    examples: Sequence[reference.Example] = reference.EXAMPLES

    statuses: Sequence[str] = drafts.STATUSES

    @property
    def hypotheses(self) -> list[dict[str, Any]]:
        """Return the list, with an empty line for the next one."""
        return [*self.draft.hypotheses, BLANK] if self.draft else []

    @cached_property
    def form(self) -> ReplyForm:
        """The texts of the draft, with what is wrong with each."""
        form = ReplyForm({name: getattr(self.draft, name) for name in drafts.TEXTS}, auto_id="reply-%s")
        for name in self.problems.keys() & form.fields.keys():
            form.add_error(name, self.problems[name])
        # The editor of programs marks the line that the error names
        form.fields["program"].widget.attrs["data-line"] = self.failure.line if self.failure else 0
        return form

    @property
    def answer_fields(self) -> list[BoundField]:
        """Return the fields of the conclusion: those that the task asks for, then others that have been written."""
        asked = tasks.find_task(self.run.task).answer
        more = [name for name in ANSWER if name not in asked and getattr(self.draft, name)]
        return [self.form[name] for name in (*asked, *more)]

    @property
    def hidden(self) -> list[BoundField]:
        """Parts of a conclusion that the task does not ask for."""
        shown = {field.name for field in self.answer_fields}
        return [self.form[name] for name in ANSWER if name not in shown]


def open_editor(run: Run, user: User | AnonymousUser) -> Editor | None:
    """Return the section for this person; None if there is nothing to do or to report."""
    if run.backbone != PERSON or run.has_ended or not isinstance(user, User):
        return None
    if (access.role_of(user) or Role.VIEWER) < Role.RESEARCHER:
        return None
    # Another person was first, or a program is running: nothing to write now.
    if not transcript.awaits_reply(run):
        return Editor(run, late=_find_late(run, user), under_way=actions.find_under_way(run))
    first = run.events.filter(kind="started").first()
    start = first.content if first and isinstance(first.content, Started) else None
    return Editor(
        run,
        draft=drafts.find_current(run, user),
        late=_find_late(run, user),
        left_over=drafts.find_left_over(run, user),
        final_answer=drafts.is_final_answer(run),
        failure=_find_failure(run),
        assignment=start.assignment if start else "",
        entries=reference.entries(start.reference if start else ""),
    )


def reopen_editor(run: Run, user: User, refusal: ActionRefused, values: Values) -> Editor:
    """Return the editor with sent text that was not accepted. Text that is no draft stays in the form, or can be
    copied."""
    found = open_editor(run, user) or Editor(run)
    fields = refusal.fields if isinstance(refusal, InvalidFields) else {}
    problems = {name: " ".join(words) for name, words in fields.items()}
    found = replace(found, trouble=str(refusal), problems=problems)
    if found.draft is None:
        return found if found.late else replace(found, unsent=_name_fields(values))
    if found.draft.values == values:
        return found
    # The other tab's text is shown beside this one's.
    kept = _name_fields(found.draft.values) if isinstance(refusal, OutOfDate) else ()
    for name, value in values.items():  # shown, not saved
        setattr(found.draft, name, value)
    return replace(found, kept=kept)


def _name_fields(values: Values) -> list[tuple[str, str]]:
    """Return written texts by the names of the fields."""
    lines = "\n".join(f"{each['text']} [{each['status']}] {each['reason']}".strip() for each in values["hypotheses"])
    texts = {"Hypotheses": lines} | {name.capitalize(): values[name] for name in drafts.TEXTS}
    return [(name, text) for name, text in texts.items() if text.strip()]


def _find_late(run: Run, user: User) -> str:
    """Return who sent the latest round, if this person has a draft of it that was not sent; else ""."""
    own = run.human_replies.filter(author=user, sent=None)
    mine = drafts.find_left_over(run, user) or own.filter(round=run.rounds + 1).first()
    sent = run.human_replies.filter(sent__isnull=False).select_related("author")
    first = sent.filter(round=mine.round).first() if mine else None
    return f"{person(first.author)} sent round {first.round} first." if first else ""


def _find_failure(run: Run) -> Failure | None:
    """Return what went wrong in the latest experiment, if it belongs to the round before this one."""
    last = run.experiments.order_by("-number").first()
    if last is None or last.status in {"ok", "running"} or last.round != run.rounds:
        return None
    lines = _LINE.findall(last.error)
    # The last line of the traceback within the program: earlier ones only led there.
    return Failure(last.number, last.error, int(lines[-1]) if lines else 0)
