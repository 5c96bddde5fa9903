"""Saved views: which there are for a person, and how one's own are kept, changed and deleted."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import QueryDict

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import StateConflict
from experiments.models import Role, SavedView

QUERY_CHARS = 2_000


def list_views(user: User) -> QuerySet[SavedView]:
    """One's own, and those that others share."""
    return SavedView.objects.filter(Q(owner=user) | Q(shared=True)).select_related("owner")


@transaction.atomic
def write_view(by: Actor, row: SavedView, name: str, query: str, *, shared: bool) -> SavedView:
    """Give a view of one's own, new or not, these fields; what the whole team is shown takes a researcher. Raises
    PermissionDenied, StateConflict for a name that another of one's views has."""
    by.require(Role.RESEARCHER if shared else Role.VIEWER)
    verb = Verb.VIEW_RENAMED if row.pk else Verb.VIEW_SAVED
    row.name, row.query, row.shared = name, clean_query(query), shared
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        words = f"You have a view “{name}” already. Change that one, or take another name."
        raise StateConflict(words) from None
    audit.record(by, verb, row, shared=shared)
    return row


@transaction.atomic
def delete_view(by: Actor, row: SavedView) -> None:
    """The runs stay."""
    audit.record(by, Verb.VIEW_DELETED, row)
    row.delete()


def clean_query(query: str) -> str:
    """A query string without the number of the page."""
    params = QueryDict(query[: 2 * QUERY_CHARS], mutable=True)
    params.pop("page", None)
    return params.urlencode()
