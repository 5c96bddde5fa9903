"""Judging: one pair at a time with the next behind it, an answer, taking the last one back."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, audit
from experiments.core.access import HtmxRequest
from experiments.core.audit import Verb
from experiments.core.params import parse_key
from experiments.models import PairwiseTrial
from experiments.models.member import Role
from experiments.pairwise import judging
from experiments.pairwise.pages import way

AHEAD = 2
"""Pairs that a page holds: the one that is judged and the one behind it."""
HELD = 50
"""Pairs, at most, that a page may say it holds."""


@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """The next pair, the one behind it hidden; what is left to do once all are judged."""
    user = access.require(request, Role.REVIEWER)
    trial = get_object_or_404(PairwiseTrial, pk=pk)
    if trial.closed:
        return redirect(trial)
    total, left = trial.pairs.count(), judging.pending(trial, user).count()
    context = {
        "trial": trial,
        "crumbs": [*way(trial), ("Judging", request.path)],
        "pairs": judging.next_shown(trial, user, AHEAD),
        "total": total,
        "done": total - left,
    }
    return render(request, "pairwise/judge.html", context)


@require_POST
def answer(request: HtmxRequest, pk: int) -> HttpResponse:
    """Keep an answer. A script is sent the pair after those that its page holds; others go on to the next page."""
    user = access.require(request, Role.REVIEWER)
    trial = get_object_or_404(PairwiseTrial, pk=pk)
    scripted = bool(request.htmx)
    try:
        with transaction.atomic():
            keep(request, user, trial)
    except judging.Refused as refusal:
        if scripted:
            return HttpResponse(str(refusal), status=409, content_type="text/plain; charset=utf-8")
        messages.error(request, str(refusal))
    if not scripted:
        return redirect("pairwise-judge", pk)
    held = [parse_key(each) for each in request.POST.getlist("holds")[:HELD]]
    pairs = judging.next_shown(trial, user, 1, held)
    return render(request, "pairwise/pairs.html", {"trial": trial, "pairs": pairs, "behind": True})


def keep(request: HttpRequest, user: User, trial: PairwiseTrial) -> None:
    """Raises Refused."""
    sent = request.POST
    pair, said = parse_key(sent.get("pair", "")), sent.get("answer", "")
    choice, new = judging.answer(user, trial.pk, pair, said, seconds_in(sent.get("seconds", "")))
    if new:
        audit.record(request, Verb.VOTE_CAST, choice.pair, trial=trial.pk)


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the last answer back and show its pair again."""
    user = access.require(request, Role.REVIEWER)
    trial = get_object_or_404(PairwiseTrial, pk=pk)
    try:
        with transaction.atomic():
            last = judging.undo(user, trial.pk)
            if last:
                audit.record(request, Verb.VOTE_UNDONE, last.pair, trial=trial.pk)
    except judging.Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("pairwise-judge", pk)


def seconds_in(typed: str) -> float | None:
    try:
        return float(typed)
    except ValueError:
        return None
