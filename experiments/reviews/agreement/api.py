"""How far the reviewers of a queue agree, measure by measure."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja import Schema

from experiments.api.entry import allow
from experiments.api.fields import Id, find
from experiments.core import blindness
from experiments.models import ReviewQueue
from experiments.reviews.agreement import lists
from experiments.reviews.api import router


class MeasureOut(Schema):
    """A measure on one line of the rubric, of all reviewers or of two, with its 95 % interval; `why` there is none."""

    line: str
    measure: str
    one: str
    other: str
    n: int
    value: float | None
    low: float | None
    high: float | None
    why: str


class AgreementOut(Schema):
    """`left_out`: opinions that are not counted, since you may still review what they are of."""

    measures: list[MeasureOut]
    left_out: int


@router.get("/queues/{pk}/agreement", response=AgreementOut, summary="Read how far the reviewers of a queue agree")
def read_agreement(request: HttpRequest, pk: Id) -> AgreementOut:
    """Alpha and Fleiss' kappa of each line, Cohen's kappa of each two reviewers. Of a blind queue that is open: once
    you have submitted all of yours."""
    user = allow(request)
    queue = find(ReviewQueue.objects.all(), pk=pk)
    if not blindness.may_see_agreement(user, queue):
        raise PermissionDenied("This queue is blind: figures would tell what others think. Submit your reviews first.")
    blindness.note_shown(user, queue.items.values_list("pk", flat=True))
    rows = [
        MeasureOut(**{name: getattr(row, name) for name in MeasureOut.model_fields})
        for row in lists.measures_of(queue, user)
    ]
    return AgreementOut(measures=rows, left_out=lists.left_out(user, queue))
