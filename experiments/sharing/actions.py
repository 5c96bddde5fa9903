"""Create a share link to a run or a study, and revoke it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db import transaction
from django.utils import timezone

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import InvalidInput, StateConflict
from experiments.core.params import parse_day_end
from experiments.models import Run, Share, Study
from experiments.models.share import MAX_VALIDITY

MAX_LINKS = 20
"""Maximum number of valid links to one run or study."""
SPANS = (("1", "1 day"), ("7", "7 days"), ("30", "30 days"), ("date", "Until the end of"))
YEAR = "Choose a day from today on, at most a year ahead."


class ShareForm(forms.Form):
    """When the link expires, and whether it shows names and comments."""

    span = forms.ChoiceField(
        label="Expires in",
        choices=SPANS,
        initial="7",
        widget=forms.RadioSelect,
        # Django's own messages would name the field's key.
        error_messages=dict.fromkeys(("required", "invalid_choice"), "Say for how long."),
    )
    date = forms.CharField(
        label="The last day", required=False, max_length=20, widget=forms.TextInput(attrs={"type": "date"})
    )
    show_names = forms.BooleanField(label="Names of people", help_text="who asked, steered and wrote", required=False)
    show_comments = forms.BooleanField(
        label="Comments", help_text="of the team on this run, those of later too", required=False
    )

    def clean(self) -> dict[str, Any]:
        """Add `expires`, the moment at which the link ends."""
        data = super().clean() or {}
        if span := data.get("span"):
            # None after an error of the date, which makes the form invalid anyway.
            known = self.day_of(data.get("date", "")) if span == "date" else timezone.now() + timedelta(days=int(span))
            data["expires"] = known
        return data

    def day_of(self, text: str) -> datetime | None:
        if not text.strip():
            self.add_error("date", "Choose the last day.")
            return None
        try:
            end = parse_day_end(text.strip())
        except InvalidInput as error:
            self.add_error("date", str(error))
            return None
        # The end of today is still ahead, so today is allowed.
        if not timezone.now() < end <= timezone.now() + MAX_VALIDITY:
            self.add_error("date", YEAR)
        return end


@transaction.atomic
def share(actor: Actor, shared: Run | Study, expires: datetime, *, names: bool, comments: bool) -> tuple[Share, str]:
    """Create a link. Returns it and its token, which is not stored and cannot be shown again.

    Comments are never shown for a study. Raises StateConflict if the run or study has the maximum number of links.
    """
    of_run = isinstance(shared, Run)
    # Locked, so that two requests at once cannot pass the limit
    # Runs and studies alike, hence the manager of the row's own class.
    type(shared)._default_manager.select_for_update().get(pk=shared.pk)
    # Expired and revoked links do not count.
    if sum(each.is_good for each in shared.shares.all()) >= MAX_LINKS:
        noun = "run" if of_run else "study"
        raise StateConflict(
            f"{noun.capitalize()} {shared.pk} has {MAX_LINKS} valid links already. Revoke one that is not needed."
        )
    # A study has no comments of its own, and its form does not ask.
    comments = comments and of_run
    made, token = Share.issue(shared, actor.person, expires, names=names, comments=comments)
    until = expires.isoformat(timespec="minutes")
    verb = Verb.RUN_SHARED if of_run else Verb.STUDY_SHARED
    audit.record(actor, verb, shared, share=made.pk, until=until, names=names, comments=comments)
    return made, token


@transaction.atomic
def revoke(actor: Actor, share: Share) -> None:
    """Revoke a link. Revoking it again changes nothing. Raises PermissionDenied for a user who neither made the link
    nor owns what it shows."""
    actor.require_own("made this link", share.created_by_id, share.shared.owner_id)
    # A second revocation is not recorded again.
    if share.revoke():
        audit.record(actor, Verb.RUN_UNSHARED if share.run else Verb.STUDY_UNSHARED, share.shared, share=share.pk)
