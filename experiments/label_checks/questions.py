"""Asking people what natural images show, for the label check: which images lack answers, and how far that is.

A worker puts the questions and says what came of them; pages and the API take the answers.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from experiments.core.visibility import visible_to
from experiments.gallery.images import serve_image
from experiments.models import LabelCheck, PresenceQuestion

MAX_JUDGES = 10
"""People who may be asked about one image."""


def count_wanted(check: LabelCheck) -> int:
    """How many people answer for each image, at least 1."""
    wanted = check.options.get("judges")
    return min(max(int(wanted), 1), MAX_JUDGES) if isinstance(wanted, int | float) else 1


def list_open(check: LabelCheck) -> QuerySet[PresenceQuestion]:
    """Questions of a check that lack answers, each with how many it has as `said`."""
    return check.questions.annotate(said=Count("answers")).filter(said__lt=count_wanted(check))


def count_judged(check: LabelCheck) -> tuple[int, int]:
    """Images with enough answers, and all."""
    every = check.questions.count()
    return every - list_open(check).count(), every


def count_answers(check: LabelCheck) -> tuple[int, int]:
    """Answers that there are, of those that are wanted; what an image has more than it needs is left out."""
    wanted = count_wanted(check)
    said = check.questions.annotate(said=Count("answers")).values_list("said", flat=True)
    return sum(min(each, wanted) for each in said), wanted * len(said)


def list_judges(check: LabelCheck) -> QuerySet[User]:
    """Who has said something of an image, by name."""
    return User.objects.filter(presence_answers__question__label_check=check).distinct().order_by("username")


def describe_waiting(check: LabelCheck) -> str:
    """How far people are, as a check says why it is unfinished."""
    judged, every = count_judged(check)
    return f"It waits for people: {judged} of {every} images judged."


def serve_question(request: HttpRequest, check: int, question: int) -> HttpResponse:
    """The image of a question, without its key. Raises Http404 once nobody is asked any more."""
    checks = visible_to(LabelCheck.objects.filter(pk=check, waits_for_people=True))
    asked = get_object_or_404(PresenceQuestion, pk=question, label_check__in=checks)
    response = serve_image(request, asked.image_id, "private, no-store")
    del response.headers["ETag"]
    return response
