"""Images that people judge for the label check, as one of them sees these: the label and an image, and neither
what the unit answers to it nor what others say of it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from experiments.core.visibility import visible_to
from experiments.gallery.images import serve_image
from experiments.label_checks.questions import count_wanted, list_judges, list_open
from experiments.models import LabelCheck, PresenceAnswer, PresenceQuestion

SHOWN = 20
"""Checks that wait for people, at most, that a list shows."""


@dataclass(frozen=True)
class QuestionView:
    """One image to judge: its key, which leads to what it shows, is not told. `label`: what it may show."""

    pk: int
    label: str


@dataclass(frozen=True)
class OpenJudging:
    """A check that waits for people: how many of its images are judged, and how many are left for one person."""

    check: LabelCheck
    images: int
    judged: int
    left: int
    wanted: int
    """People who answer for each image."""


def list_pending(check: LabelCheck, user: User) -> list[PresenceQuestion]:
    """What this person has not said anything of and lacks answers, in the order that it is offered in.

    Images with the fewest answers come first, the others by lot, drawn for each person. So two who work side by side
    seldom meet, and whatever has been judged at any time is a random part of all: `checks.people` relies on that.
    """
    done = PresenceAnswer.objects.filter(question__label_check=check, user=user).values("question")
    rows = list(list_open(check).exclude(pk__in=done))
    return sorted(rows, key=lambda row: (row.said, _draw_lot(user, row)))  # type: ignore[attr-defined]


def _draw_lot(user: User, question: PresenceQuestion) -> bytes:
    return hashlib.sha256(f"{user.pk} {question.pk}".encode()).digest()


def list_next(check: LabelCheck, user: User, count: int, held: Collection[int] = ()) -> list[QuestionView]:
    """The next images for this person, but for those that their page holds already; none once nobody is asked."""
    if not check.waits_for_people:
        return []
    rows = [row for row in list_pending(check, user) if row.pk not in held][:count]
    return [QuestionView(row.pk, check.text) for row in rows]


def serve_question(request: HttpRequest, check: int, question: int) -> HttpResponse:
    """The image of a question, without its key. Raises Http404 once nobody is asked any more."""
    checks = visible_to(LabelCheck.objects.filter(pk=check, waits_for_people=True))
    asked = get_object_or_404(PresenceQuestion, pk=question, label_check__in=checks)
    response = serve_image(request, asked.image_id, "private, no-store")
    del response.headers["ETag"]
    return response


def count_progress(check: LabelCheck, user: User) -> tuple[int, int]:
    """Images that need nothing more of this person, and all."""
    every = check.questions.count()
    return every - len(list_pending(check, user)), every


def list_others(check: LabelCheck, user: User) -> Sequence[User]:
    """Who else has judged images of it."""
    return [each for each in list_judges(check) if each.pk != user.pk]


def list_waiting(user: User) -> list[OpenJudging]:
    """Checks that wait for people, the newest first."""
    checks = visible_to(LabelCheck.objects.filter(waits_for_people=True)).defer("kept", "result")[:SHOWN]
    questions = PresenceQuestion.objects.filter(label_check__in=[each.pk for each in checks]).order_by()
    said, mine = Count("answers"), Count("answers", filter=Q(answers__user=user))
    by_check: dict[int, list[tuple[int, int]]] = {}
    for pk, answers, own in questions.annotate(said=said, mine=mine).values_list("label_check", "said", "mine"):
        by_check.setdefault(pk, []).append((answers, own))
    return [_describe_waiting(each, by_check.get(each.pk, [])) for each in checks]


def _describe_waiting(check: LabelCheck, answers: Sequence[tuple[int, int]]) -> OpenJudging:
    """`answers`: of each image how many there are, and how many of them are this person's."""
    wanted = count_wanted(check)
    judged = sum(count >= wanted for count, _ in answers)
    left = sum(count < wanted and not own for count, own in answers)
    return OpenJudging(check, len(answers), judged, left, wanted)
