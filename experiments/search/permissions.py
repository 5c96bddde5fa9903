"""Who finds what people said of a run: asked of `core.blindness` whenever somebody looks, never when it is written.

Comments are hidden from who is still to review their run unseen, as on its page. Reviews of others and final verdicts
also from who may still take back a review of their own of it: that nothing is found would tell of opinions too.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from experiments.core import blindness
from experiments.models import Review, ReviewState, Run, SearchText
from experiments.models.search_text import OPINIONS, TextKind


def seen_by(viewer: User | None) -> Q:
    """Of passages: those for this person's eyes now. Nobody in particular sees no opinion."""
    facts = ~Q(kind__in=OPINIONS)
    if viewer is None:
        return facts
    unblinded = ~Q(run__in=blindness.blinded_runs(viewer))
    comments = Q(kind=TextKind.COMMENT) & unblinded
    here = Q(kind=TextKind.REVIEW, anchor__in=readable(viewer).values("pk"))
    brought = Q(kind=TextKind.REVIEW, anchor=None) & unblinded
    finals = Q(kind=TextKind.FINAL) & ~Q(run__in=_list_hidden_runs(viewer))
    return facts | comments | here | brought | finals


def readable(viewer: User) -> QuerySet[Review]:
    """Submitted reviews: their own, and those of others that they may read and that no longer sway theirs."""
    others = Q(pk__in=blindness.visible(viewer).order_by().values("pk")) & ~Q(item__run__in=_list_hidden_runs(viewer))
    return Review.objects.filter(others | Q(reviewer=viewer), state=ReviewState.SUBMITTED).order_by()


def _list_hidden_runs(viewer: User) -> QuerySet[Run, int]:
    return Run.objects.filter(blindness.has_hidden_verdict(viewer)).order_by().values_list("pk", flat=True)


def note_shown(viewer: User | None, keys: Sequence[int]) -> None:
    """Keep that this person was shown these passages, where they are reviews: their own of the same items stand."""
    if viewer is None:
        return
    reviews = SearchText.objects.filter(pk__in=keys, kind=TextKind.REVIEW).order_by().values_list("anchor", flat=True)
    if shown := [key for key in reviews if key]:
        items = Review.objects.filter(pk__in=shown).exclude(reviewer=viewer).values_list("item_id", flat=True)
        blindness.note_shown(viewer, list(items))
