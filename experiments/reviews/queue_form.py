"""The form of a new queue."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.core.display_name import person
from experiments.models.member import Role
from experiments.reviews.queues import Plan

MOST_REVIEWERS = 9
NOTE_CHARS = 2_000


def reviewers() -> QuerySet[User]:
    """Everybody whose role lets them review."""
    return User.objects.filter(member__role__gte=Role.REVIEWER, is_active=True).order_by("username")


class QueueForm(forms.Form):
    """What is asked of who makes a queue; the runs come with the address."""

    name = forms.CharField(max_length=80)
    note = forms.CharField(max_length=NOTE_CHARS, required=False)
    reviewers_per_item = forms.IntegerField(min_value=1, max_value=MOST_REVIEWERS, initial=1)
    blind = forms.BooleanField(required=False, initial=True)
    only_ended = forms.BooleanField(required=False, initial=True)
    reviewers = forms.ModelMultipleChoiceField(queryset=User.objects.none(), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["reviewers"]
        assert isinstance(field, forms.ModelMultipleChoiceField)
        field.queryset = reviewers()
        self.choices = [(str(user.pk), person(user)) for user in reviewers()]

    def clean(self) -> dict[str, Any]:
        """Enough people are named for every item."""
        known = super().clean() or self.cleaned_data
        named, wanted = known.get("reviewers"), known.get("reviewers_per_item") or 1
        if named and len(named) < wanted:
            words = f"Name at least {wanted}, or nobody: so many opinions of each run are wanted."
            self.add_error("reviewers", words)
        return known

    def plan(self, filters: str) -> Plan:
        known = self.cleaned_data
        return Plan(
            name=known["name"],
            note=known["note"],
            filters=filters,
            reviewers_per_item=known["reviewers_per_item"],
            blind=known["blind"],
            reviewers=list(known["reviewers"]),
        )
