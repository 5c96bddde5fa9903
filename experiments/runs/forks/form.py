"""The form of a fork: the query of its parent, in which backbone, question, seed and limits may change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib.auth.models import User

from experiments.core.display_name import person
from experiments.core.system_names import SystemNameMasker
from experiments.models import Run
from experiments.runs.asking.form import QueryForm, copy_values
from experiments.runs.drafts import draft_like
from experiments.runs.forks import lineage
from experiments.runs.steering.actions import MAX_CHARS
from workers.record.limits import DEFAULT_LIMITS

MAY_CHANGE = ("question", "backbone", "backbone_model", "seed", "unpriced", *DEFAULT_LIMITS)
GONE = ("model", "layer", "unit", "dataset", "surroundings", "exemplars", "reflections", "ablation", "toolset", "task")
"""Fields that a fork takes over unchanged: the form cannot correct what is wrong with them."""


class ForkForm(QueryForm):
    """Bound where `given` is; what it leaves out stays as it is in the parent."""

    note = forms.CharField(
        help_text="The agent reads it before its next reply.",
        required=False,
        max_length=MAX_CHARS,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "What should it look at, or do otherwise?"}),
        error_messages={
            "max_length": "The note has %(show_value)d characters; at most %(limit_value)d are taken. Shorten it."
        },
    )

    def __init__(self, parent: Run, at: lineage.ForkPoint, given: Mapping[str, Any] | None = None) -> None:
        self.source, self.at = parent, at
        same = copy_values(parent)
        if given is None:
            super().__init__(initial=same)
        else:
            # Of the request, only fields that may change are read.
            own = {name: given[name] for name in (*MAY_CHANGE, "note") if name in given}
            super().__init__({**same, **own})
        note, question = self.fields["note"], self.fields["question"]
        note.label = "Note" if at.concluded else "Note (optional)"
        note.widget.attrs["data-keep"] = f"note-{parent.pk}"
        question.help_text = "The agent is given this word for word, as if it had been asked so from the start."

    def clean_rounds(self) -> int | None:
        most: int | None = self.cleaned_data["rounds"]
        if most is not None and most <= self.at.round:
            raise forms.ValidationError(
                f"The rounds that are copied count, up to {self.at.round}: allow more, or the fork ends at once."
            )
        return most

    def clean_note(self) -> str:
        text = str(self.cleaned_data["note"]).replace("\r\n", "\n").strip()
        if self.at.concluded and not text:
            raise forms.ValidationError(
                f"The agent concluded in round {self.at.round}. "
                "Tell it what to do beyond that, or fork from an earlier round."
            )
        return text

    @property
    def gone(self) -> list[str]:
        """List what the parent was made with and no longer exists, in sentences."""
        return [str(problem) for name in GONE for problem in self.errors.get(name, ())]

    def run(self, owner: User) -> Run:
        """Return the unsaved fork; it copies the rounds as soon as a worker takes it."""
        data, parent = self.cleaned_data, self.source
        run = draft_like(
            parent,
            owner=owner,
            parent=parent,
            fork_round=self.at.round,
            limits={name: data[name] for name in DEFAULT_LIMITS},
            **{name: data[name] for name in MAY_CHANGE if name not in {*DEFAULT_LIMITS, "unpriced"}},
        )
        # As the owner may read them: the plan is shown in the transcript.
        changes = lineage.list_changes(parent, run, SystemNameMasker(owner))
        run.fork_plan = {"who": person(owner), "upto": self.at.upto, "note": data["note"], "changes": changes}
        return run
