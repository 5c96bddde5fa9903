"""Judging natural images for the label check, one after the other and blind; finishing; the answers as a file."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused, StateConflict
from experiments.core.params import parse_key
from experiments.core.visibility import visible_to
from experiments.label_checks import actions, answers_csv, judging, judging_actions
from experiments.models import LabelCheck, Role

AHEAD = 3
"""Images that a page holds: the one that is judged and those behind it, loaded already."""
HELD = 50
"""Images, at most, that a page may say it holds."""


@require_safe
def judge(request: HttpRequest, pk: int) -> HttpResponse:
    """The next image, those behind it hidden; what is left to do once this person has judged all."""
    user = access.require(request, Role.REVIEWER)
    row = get_object_or_404(visible_to(LabelCheck.objects.all()), pk=pk)
    if not row.waits_for_people:
        return redirect(row)
    done, total = judging.count_progress(row, user)
    context = {
        "check": row,
        # The way here names no unit: what it is, and what it responds to, is not to be known
        "breadcrumbs": [("Review", reverse("review")), ("Images to judge", request.path)],
        "questions": judging.list_next(row, user, AHEAD),
        "done": done,
        "total": total,
        "others": judging.list_others(row, user),
        "undoable": row.questions.filter(answers__user=user).exists(),
    }
    return render(request, "label_checks/judge.html", context)


@require_safe
def image(request: HttpRequest, pk: int, question: int) -> HttpResponse:
    """The image of a question that is open, without its key. Raises Http404 once nobody is asked any more."""
    access.require(request, Role.REVIEWER)
    return judging.serve_question(request, pk, question)


@require_POST
def answer(request: HtmxRequest, pk: int) -> HttpResponse:
    """Keep an answer. A script is sent the image after those that its page holds; others go on to the next page."""
    actor = Actor.of(request, Role.REVIEWER)
    row, sent = get_object_or_404(visible_to(LabelCheck.objects.all()), pk=pk), request.POST
    scripted = bool(request.htmx)
    question, seconds = parse_key(sent.get("question")), _read_seconds(sent.get("seconds", ""))
    try:
        judging_actions.answer(actor, pk, question, sent.get("answer", ""), seconds)
    except ActionRefused as refusal:
        if scripted:
            return HttpResponse(str(refusal), status=409, content_type="text/plain; charset=utf-8")
        messages.error(request, str(refusal))
    if not scripted:
        return redirect("check-judge", pk)
    row.refresh_from_db()
    held = [parse_key(each) for each in sent.getlist("holds")[:HELD]]
    questions = judging.list_next(row, actor.person, 1, held)
    return render(request, "label_checks/questions.html", {"check": row, "questions": questions, "behind": True})


def _read_seconds(typed: str) -> float | None:
    try:
        return float(typed)
    except ValueError:
        return None


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the last answer back and show its image again."""
    actor = Actor.of(request, Role.REVIEWER)
    get_object_or_404(visible_to(LabelCheck.objects.all()), pk=pk)
    try:
        judging_actions.undo_answer(actor, pk)
    except ActionRefused as refusal:
        messages.error(request, str(refusal))
    return redirect("check-judge", pk)


@require_POST
def finish(request: HttpRequest, pk: int) -> HttpResponse:
    """Measure the label by the images judged so far."""
    actor = Actor.of(request, actions.STARTS)
    row = get_object_or_404(visible_to(LabelCheck.objects.all()), pk=pk)
    try:
        judging_actions.finish(actor, pk)
    except ActionRefused as refusal:
        messages.error(request, str(refusal))
    return redirect(row)


@require_safe
def file(request: HttpRequest, pk: int) -> HttpResponse:
    """What people said, as CSV. Raises Http404 while others could be led by it, and where nobody was asked."""
    access.require(request)
    try:
        return answers_csv.send_answers(get_object_or_404(visible_to(LabelCheck.objects.all()), pk=pk))
    except StateConflict as refused:
        raise Http404(str(refused)) from None
