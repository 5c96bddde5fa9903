"""Questions to people about natural images for the label check: which images need answers, and the progress.

A worker creates the questions and scores the answers; pages and API collect them.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from experiments.core.visibility import visible_to
from experiments.gallery.images import serve_image
from experiments.models import ConceptQuestion, LabelCheck

MAX_JUDGES = 10
"""Maximum number of people asked about one image."""


def count_wanted(check: LabelCheck) -> int:
    """Return the number of answers wanted per image, at least 1."""
    # Options are JSON and may come from an import
    wanted = check.options.get("judges")
    return min(max(int(wanted), 1), MAX_JUDGES) if isinstance(wanted, int | float) else 1


def list_open(check: LabelCheck) -> QuerySet[ConceptQuestion]:
    """Return the questions that need answers, with their number of answers as `said`."""
    return check.questions.annotate(said=Count("answers")).filter(said__lt=count_wanted(check))


def count_judged(check: LabelCheck) -> tuple[int, int]:
    """Return the numbers of images with enough answers, and of all images."""
    every = check.questions.count()
    return every - list_open(check).count(), every


def count_answers(check: LabelCheck) -> tuple[int, int]:
    """Return the numbers of answers given and wanted. Surplus answers are not counted."""
    wanted = count_wanted(check)
    said = check.questions.annotate(said=Count("answers")).values_list("said", flat=True)
    return sum(min(each, wanted) for each in said), wanted * len(said)


def list_judges(check: LabelCheck) -> QuerySet[User]:
    """Return the people who judged an image, by name."""
    return User.objects.filter(concept_answers__question__label_check=check).distinct().order_by("username")


def describe_waiting(check: LabelCheck) -> str:
    """Describe the progress, as a check's reason for being unfinished."""
    judged, every = count_judged(check)
    return f"It waits for people: {judged} of {every} images judged."


def serve_question(request: HttpRequest, check: int, question: int) -> HttpResponse:
    """Send the image of a question without its key. Raises Http404 if people are no longer asked."""
    checks = visible_to(LabelCheck.objects.filter(pk=check, waits_for_people=True))
    asked = get_object_or_404(ConceptQuestion, pk=question, label_check__in=checks)
    response = serve_image(request, asked.image_id, "private, no-store")
    # The ETag is the key
    del response.headers["ETag"]
    return response
