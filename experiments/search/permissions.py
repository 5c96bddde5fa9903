"""Decide who finds what people said of a run: `core.blindness` decides on each search, not when the index is
written.

Comments are hidden from people who have yet to review their run blind, as on its page. Reviews of others and final
verdicts are hidden also from people who may still take back their own review of it: even an empty result would
reveal something.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from experiments.core import blindness
from experiments.models import Review, ReviewState, Run, SearchText
from experiments.models.search_text import OPINIONS, TextKind


def filter_visible(viewer: User | None) -> Q:
    """Return a filter for passages that this person may see now. Without a person: no opinions."""
    facts = ~Q(kind__in=OPINIONS)
    if viewer is None:
        return facts
    unblinded = ~Q(run__in=blindness.list_blinded_runs(viewer))
    comments = Q(kind=TextKind.COMMENT) & unblinded
    here = Q(kind=TextKind.REVIEW, anchor__in=_list_readable_reviews(viewer).values("pk"))
    brought = Q(kind=TextKind.REVIEW, anchor=None) & unblinded
    finals = Q(kind=TextKind.FINAL) & ~Q(run__in=_list_hidden_runs(viewer))
    return facts | comments | here | brought | finals


def _list_readable_reviews(viewer: User) -> QuerySet[Review]:
    """Return the submitted reviews that the viewer may find: their own, and those of others that they may read and
    that no longer influence their own."""
    others = Q(pk__in=blindness.list_visible_reviews(viewer).order_by().values("pk")) & ~Q(
        item__run__in=_list_hidden_runs(viewer)
    )
    return Review.objects.filter(others | Q(reviewer=viewer), state=ReviewState.SUBMITTED).order_by()


def _list_hidden_runs(viewer: User) -> QuerySet[Run, int]:
    return Run.objects.filter(blindness.has_hidden_verdict(viewer)).order_by().values_list("pk", flat=True)


def record_disclosure(viewer: User | None, keys: Sequence[int]) -> None:
    """Record that this person was shown these passages; if they are reviews, the person's own of the same items can
    no longer be taken back."""
    if viewer is None:
        return
    reviews = SearchText.objects.filter(pk__in=keys, kind=TextKind.REVIEW).order_by().values_list("anchor", flat=True)
    if shown := [key for key in reviews if key]:
        items = Review.objects.filter(pk__in=shown).exclude(reviewer=viewer).values_list("item_id", flat=True)
        blindness.record_disclosure(viewer, list(items))
