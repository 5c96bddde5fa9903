"""Rows that people store under a name, for themselves or for the team: saved views of lists, presets of new runs."""

from __future__ import annotations

from typing import TypeVar

from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from experiments.core.errors import StateConflict
from experiments.models import Preset, SavedView

OwnRow = TypeVar("OwnRow", SavedView, Preset)
NAME_CHARS = 60


def choose_readable(rows: QuerySet[OwnRow], user: User | AnonymousUser) -> QuerySet[OwnRow]:
    """Return the user's own rows, and those that others share."""
    if not isinstance(user, User):
        # Guests of a shared page have no account, and own nothing.
        return rows.none()
    return rows.filter(Q(owner=user) | Q(shared=True)).select_related("owner")


def save_under_name(row: OwnRow, noun: str) -> None:
    """Save a row. Raises StateConflict for a name that another of the user's rows has."""
    try:
        # A savepoint: the error must not spoil the transaction around it.
        with transaction.atomic():
            row.save()
    except IntegrityError:
        words = f"You have a {noun} “{row.name}” already. Change that one, or take another name."
        raise StateConflict(words) from None
