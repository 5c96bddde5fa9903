"""A round that a person writes: the editor under the transcript, its draft, and who writes next."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.compatibility import PERSON
from experiments.core.errors import ActionRefused, InvalidFields, InvalidInput, OutOfDate
from experiments.display.form_fields import add_refusal
from experiments.display.window import number
from experiments.models import Backbone, HumanReply, Role, Run
from experiments.runs.human import actions, drafts, editor
from experiments.runs.human.drafts import Values
from experiments.runs.human.forms import HandOver


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the editor: alone for htmx, else as a full page. POST sends what is written."""
    run, actor = access.get_run(request, pk, Role.RESEARCHER), Actor.of(request, Role.RESEARCHER)
    if request.method != "POST":
        return _show(request, run, editor.open_editor(run, actor.person))
    values = drafts.read_form(request.POST)
    try:
        actions.send_reply(actor, _save(request, run, values))
    except ActionRefused as refusal:
        # Another request may have changed the run meanwhile.
        run.refresh_from_db()
        return _show(request, run, editor.reopen_editor(run, actor.person, refusal, values), status=409)
    return _show_or_return(request, run)


def _show(request: HtmxRequest, run: Run, found: editor.Editor | None, status: int = 200) -> HttpResponse:
    """Render the editor as it is now."""
    context = {"run": run, "editor": found}
    # htmx does not show an answer with an error status.
    if request.htmx:
        return render(request, "runs/human/editor.html", context)
    return render(request, "runs/human.html", context, status=status)


def _show_or_return(request: HtmxRequest, run: Run) -> HttpResponse:
    if not request.htmx:
        return redirect(run)
    run.refresh_from_db()
    return _show(request, run, editor.open_editor(run, request.user))


def _save(request: HtmxRequest, run: Run, values: Values) -> HumanReply:
    """Save the form as this person's draft. Raises ActionRefused, Http404 for a form without a round."""
    round_number, version = number(request.POST, "round"), number(request.POST, "version")
    if round_number is None or version is None:
        raise Http404("The form does not say which round it belongs to.")
    return actions.save_draft(Actor.of(request, Role.RESEARCHER), run.pk, round_number, version, values)


@require_POST
def draft(request: HtmxRequest, pk: int) -> HttpResponse:
    """Save the form as a draft: return the new version, or why it was not saved (409), with the draft as it is."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    try:
        saved = _save(request, run, drafts.read_form(request.POST))
    except OutOfDate as error:
        # The draft as the other tab left it, so that this one can show both.
        kept = run.human_replies.get(round=number(request.POST, "round") or 0, author=Actor.of(request).person)
        held = {"version": kept.version, **kept.values}
        return JsonResponse({"why": "stale", "words": str(error), "kept": held}, status=409)
    except InvalidFields as error:
        words = " ".join(each for sentences in error.fields.values() for each in sentences)
        return JsonResponse({"why": "unfit", "words": words}, status=409)
    except ActionRefused as refusal:
        return JsonResponse({"why": "over", "words": str(refusal)}, status=409)
    return JsonResponse({"version": saved.version, "saved": saved.saved.isoformat()})


@require_POST
def stop(request: HtmxRequest, pk: int) -> HttpResponse:
    """End the program that a person sent; the run continues."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    try:
        actions.stop_program(Actor.of(request, Role.RESEARCHER), run)
    except ActionRefused as refusal:
        messages.info(request, str(refusal))
    return _show_or_return(request, run)


@require_POST
def take_over(request: HtmxRequest, pk: int) -> HttpResponse:
    """Let a person write from the next reply on."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    try:
        actions.hand_over(Actor.of(request, Role.RESEARCHER), run.pk, PERSON)
    except ActionRefused as refusal:
        messages.error(request, str(refusal))
    return redirect(run)


@require_http_methods(["GET", "HEAD", "POST"])
def hand_over(request: HtmxRequest, pk: int) -> HttpResponse:
    """Choose who writes from the next reply on: another backbone, with a note to it, or a person."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    form = HandOver(request.POST) if request.method == "POST" else HandOver()
    if form.is_bound:
        backbone, note = request.POST.get("backbone", ""), request.POST.get("note", "")
        # Each backbone has its own list of models in the form.
        model = request.POST.get(f"model-{backbone}", "")
        try:
            actions.hand_over(Actor.of(request, Role.RESEARCHER), run.pk, backbone, model, note)
            return redirect(run)
        except InvalidInput as refusal:
            add_refusal(form, refusal)
        except ActionRefused as refusal:
            messages.error(request, str(refusal))
            return redirect(run)
    context = {"run": run, "backbones": Backbone.objects.exclude(key=PERSON), "form": form}
    return render(request, "runs/human/hand_over.html", context, status=400 if form.is_bound else 200)
