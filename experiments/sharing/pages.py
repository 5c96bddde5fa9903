"""Pages where users create and revoke links to a run or a study; a settings page lists all links for admins."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.core import access
from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.core.paging import Page, count, number_of
from experiments.models import Role, Run, Share, Study
from experiments.sharing import actions

PER_PAGE = 50


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def of_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the links to a run. A new link is shown once, in the response to its form."""
    actor, run = Actor.of(request, Role.RESEARCHER), get_object_or_404(Run, pk=pk)
    return _answer_form(request, actor, run, {"run": run, "noun": "run", "lead": run.question})


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def of_study(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the links to a study, as `of_run` does."""
    actor, study = Actor.of(request, Role.RESEARCHER), get_object_or_404(Study, pk=pk)
    return _answer_form(request, actor, study, {"study": study, "noun": "study", "lead": study.title})


def _answer_form(request: HttpRequest, actor: Actor, shared: Run | Study, about: dict[str, Any]) -> HttpResponse:
    """Handle the form, then show the page with the links to `shared`."""
    form = actions.ShareForm(request.POST) if request.method == "POST" else actions.ShareForm()
    address = ""
    if form.is_bound and form.is_valid():
        data = form.cleaned_data
        shown = {"names": data["show_names"], "comments": data["show_comments"]}
        try:
            _, token = actions.share(actor, shared, data["expires"], **shown)
            address = request.build_absolute_uri(reverse("shared", args=[token]))
        except StateConflict as error:
            form.add_error(None, str(error))
    context: dict[str, Any] = about | {
        "shared": shared,
        "shares": [
            (each, access.may_change(actor.person, each.created_by_id, shared.owner_id))
            # The limit counts valid links; expired and revoked ones are listed too, up to this bound.
            for each in shared.shares.select_related("created_by")[: 5 * actions.MAX_LINKS]
        ],
        # Empty again after a link was made, so that a reload does not suggest another.
        "form": actions.ShareForm() if address else form,
        "address": address,
    }
    return render(request, "sharing/of_run.html", context, status=400 if form.errors else 200)


@require_POST
def revoke(request: HttpRequest, pk: int, share: int) -> HttpResponse:
    """Revoke a link to a run."""
    actor, run = Actor.of(request, Role.RESEARCHER), get_object_or_404(Run, pk=pk)
    return _revoke(request, actor, get_object_or_404(run.shares.select_related("run"), pk=share))


@require_POST
def revoke_of_study(request: HttpRequest, pk: int, share: int) -> HttpResponse:
    """Revoke a link to a study."""
    actor, study = Actor.of(request, Role.RESEARCHER), get_object_or_404(Study, pk=pk)
    return _revoke(request, actor, get_object_or_404(study.shares.select_related("study"), pk=share))


def _revoke(request: HttpRequest, actor: Actor, share: Share) -> HttpResponse:
    actions.revoke(actor, share)
    messages.success(request, "The link is revoked: it opens nothing any more.")
    # The same form is on the settings page of admins: lead back to where it was sent from.
    if "settings" in request.POST:
        return redirect("settings-shares")
    return redirect("run-shares" if share.run else "study-shares", share.shared.pk)


@require_safe
@never_cache
def every(request: HttpRequest) -> HttpResponse:
    """List all links, newest first."""
    access.require(request, Role.ADMIN)
    rows = Share.objects.select_related("run", "study", "created_by")
    page = Page(number_of(request.GET.get("page", "")) or 1, PER_PAGE, count(rows), {})
    shares = [(each, True) for each in rows[page.start : page.end]]
    return render(request, "sharing/every.html", {"page": page, "shares": shares, "everywhere": True})
