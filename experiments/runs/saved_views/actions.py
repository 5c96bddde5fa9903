"""Saved views of lists: list a person's views; save, change and delete their own."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.http import QueryDict

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.models import Role, SavedView
from experiments.runs.own_rows import choose_readable, save_under_name

QUERY_CHARS = 2_000


def list_views(user: User, of: str = "") -> QuerySet[SavedView]:
    """Return the user's own views and those that others share, of one list or of all."""
    rows = choose_readable(SavedView.objects.all(), user)
    return rows.filter(list=of) if of else rows


@transaction.atomic
def write_view(actor: Actor, row: SavedView, name: str, query: str, *, shared: bool) -> SavedView:
    """Write these fields into a view of the actor, new or not. Raises PermissionDenied, StateConflict for a name that
    another of their views has."""
    # What the whole team sees needs a researcher.
    actor.require(Role.RESEARCHER if shared else Role.VIEWER)
    verb = Verb.VIEW_RENAMED if row.pk else Verb.VIEW_SAVED
    row.name, row.query, row.shared = name, clean_query(query), shared
    save_under_name(row, "view")
    audit.record(actor, verb, row, shared=shared)
    return row


@transaction.atomic
def delete_view(actor: Actor, row: SavedView) -> None:
    """Delete a view; the listed runs stay."""
    audit.record(actor, Verb.VIEW_DELETED, row)
    row.delete()


def clean_query(query: str) -> str:
    """Return a query string without the page number and without empty values."""
    # Longer ones are refused anyway.
    params = QueryDict(query[: 2 * QUERY_CHARS], mutable=True)
    # A view is a choice of rows, not a place in their list.
    for name in ("page", "after"):
        params.pop(name, None)
    for name, values in list(params.lists()):
        params.setlist(name, [each for each in values if each])
    return params.urlencode()
