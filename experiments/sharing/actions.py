"""Making a link to a run, for how long and with what; revoking one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from experiments.core import audit
from experiments.core.audit import Verb
from experiments.models import Run, Share
from experiments.models.share import LONGEST
from experiments.runs.lists import Senseless, next_day

MOST = 20
"""Links to one run that may be good at the same time."""
SPANS = (("1", "1 day"), ("7", "7 days"), ("30", "30 days"), ("date", "Until the end of"))
YEAR = "Choose a day from today on, at most a year ahead."


class ShareForm(forms.Form):
    """For how long, and whether names and comments are shown."""

    span = forms.ChoiceField(
        choices=SPANS,
        initial="7",
        error_messages={"required": "Say for how long.", "invalid_choice": "Say for how long."},
    )
    date = forms.CharField(required=False, max_length=20)
    show_names = forms.BooleanField(required=False)
    show_comments = forms.BooleanField(required=False)

    def clean(self) -> dict[str, Any]:
        """With `expires`, the moment at which the link ends."""
        data = super().clean() or {}
        if span := data.get("span"):
            data["expires"] = self.day_of(data.get("date", "")) if span == "date" else in_days(int(span))
        return data

    def day_of(self, text: str) -> datetime | None:
        if not text.strip():
            self.add_error("date", "Choose the last day.")
            return None
        try:
            end = next_day(text.strip())
        except Senseless as error:
            self.add_error("date", str(error))
            return None
        if not timezone.now() < end <= timezone.now() + LONGEST:
            self.add_error("date", YEAR)
        return end


def in_days(days: int) -> datetime:
    return timezone.now() + timedelta(days=days)


@transaction.atomic
def issue(request: HttpRequest, run: Run, by: User, data: dict[str, Any]) -> tuple[Share, str] | None:
    """A new share and its token, which is told once; None if the run has as many as it may."""
    Run.objects.select_for_update().get(pk=run.pk)
    if sum(each.is_good for each in run.shares.all()) >= MOST:
        return None
    names, comments = data["show_names"], data["show_comments"]
    share, token = Share.issue(run.pk, by, data["expires"], names=names, comments=comments)
    until = data["expires"].isoformat(timespec="minutes")
    audit.record(request, Verb.RUN_SHARED, run, share=share.pk, until=until, names=names, comments=comments)
    return share, token


@transaction.atomic
def revoke(request: HttpRequest, share: Share) -> None:
    """From now on it opens nothing. Twice is once."""
    if share.revoke():
        audit.record(request, Verb.RUN_UNSHARED, share.run, share=share.pk)
