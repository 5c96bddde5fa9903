"""A round that a person writes: the desk under the transcript, its draft, and who writes next."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.core import access, audit
from experiments.core.access import HtmxRequest
from experiments.core.audit import Verb
from experiments.display.window import number
from experiments.models import HumanReply, Run
from experiments.models.member import Role
from experiments.runs.human import content, drafts, editor, handover, sending
from experiments.runs.human.content import Values
from experiments.runs.human.drafts import NoSuchRound, Refused, Sent, Stale, Unfit


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HtmxRequest, pk: int) -> HttpResponse:
    """The desk: alone for htmx, else as a page of its own. POST sends what is written."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    assert isinstance(request.user, User)
    if request.method != "POST":
        return show(request, run, editor.of(run, request.user))
    values = content.from_form(request.POST)
    try:
        send(request, run, saved(request, run, values))
    except Refused as refusal:
        run.refresh_from_db()
        return show(request, run, editor.after_refusal(run, request.user, refusal, values), status=409)
    run.refresh_from_db()
    return show(request, run, editor.of(run, request.user)) if request.htmx else redirect(run)


def show(request: HtmxRequest, run: Run, found: editor.Desk | None, status: int = 200) -> HttpResponse:
    """The desk as it is now. htmx takes no answers that refuse."""
    context = {"run": run, "desk": found}
    if request.htmx:
        return render(request, "runs/human/desk.html", context)
    return render(request, "runs/human.html", context, status=status)


def send(request: HttpRequest, run: Run, turn: HumanReply) -> None:
    """Send a saved draft, and record who did. Raises Refused."""
    with transaction.atomic():
        sending.send(turn)
        audit.record(request, Verb.TURN_SENT, run, round=turn.round, what=turn.what)


def saved(request: HttpRequest, run: Run, values: Values) -> HumanReply:
    """What the form holds, kept as this person's draft. Raises Refused, Http404 for a form without a round."""
    round_number, version = number(request.POST, "round"), number(request.POST, "version")
    if round_number is None or version is None:
        raise Http404("The form does not say which round it belongs to.")
    assert isinstance(request.user, User)
    return drafts.save(run.pk, request.user, round_number, version, values)


@require_POST
def draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep what the form holds: the new version, or why it was not kept (409), with the draft as it is."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    try:
        turn = saved(request, run, content.from_form(request.POST))
    except Stale as stale:
        kept = {"version": stale.turn.version, **content.of(stale.turn)}
        return JsonResponse({"why": "stale", "words": str(stale), "kept": kept}, status=409)
    except (Sent, NoSuchRound) as refusal:
        return JsonResponse({"why": "over", "words": str(refusal)}, status=409)
    except Unfit as unfit:
        return JsonResponse({"why": "unfit", "words": " ".join(unfit.problems.values())}, status=409)
    return JsonResponse({"version": turn.version, "saved": turn.saved.isoformat()})


@require_POST
def stop(request: HtmxRequest, pk: int) -> HttpResponse:
    """End the program that a person sent; the run goes on."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    assert isinstance(request.user, User)
    try:
        with transaction.atomic():
            turn = sending.stop(run, request.user)
            audit.record(request, Verb.PROGRAM_STOPPED, run, round=turn.round)
    except Refused as refusal:
        messages.info(request, str(refusal))
    return show(request, run, editor.of(run, request.user)) if request.htmx else redirect(run)


@require_POST
def take_over(request: HttpRequest, pk: int) -> HttpResponse:
    """A person writes from the next reply on."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    return handed(request, run, handover.people())


@require_http_methods(["GET", "HEAD", "POST"])
def hand_over(request: HttpRequest, pk: int) -> HttpResponse:
    """Choose who writes from the next reply on: another agent, with a note to it, or a person."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    if request.method != "POST":
        return render(request, "runs/human/hand_over.html", {"run": run, "agents": handover.agents()})
    model = request.POST.get(f"model-{request.POST.get('backbone', '')}", "")
    try:
        author = handover.author(run, request.POST.get("backbone", ""), model)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect("run-hand-over", run.pk)
    return handed(request, run, author, request.POST.get("note", ""))


def handed(request: HttpRequest, run: Run, author: handover.Author, note: str = "") -> HttpResponse:
    """Hand the run to the author, and go back to it with what became of that."""
    assert isinstance(request.user, User)
    try:
        hand(request, run, author, note)
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect(run)


def hand(request: HttpRequest, run: Run, author: handover.Author, note: str = "") -> None:
    """Hand the run over, and record who did. Raises Refused."""
    assert isinstance(request.user, User)
    with transaction.atomic():
        handover.hand(run.pk, request.user, author, note)
        audit.record(request, Verb.RUN_HANDED, run, backbone=author.backbone, model=author.model, note=bool(note))
