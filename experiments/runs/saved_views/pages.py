"""Saved views of lists: save, rename, share and delete one."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.models import SavedView, ViewedList
from experiments.runs.saved_views import actions
from experiments.runs.saved_views.form import ViewForm


@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Save the state of a list. A view of the user with this name gets the new state."""
    actor, form = Actor.of(request), ViewForm(request.POST)
    of = request.POST.get("list", "")
    # Names of lists are names of addresses: only known ones are reversed.
    of = of if of in ViewedList.values else ViewedList.RUNS
    query = actions.clean_query(request.POST.get("query", ""))
    if not form.is_valid() or len(query) > actions.QUERY_CHARS:
        messages.error(request, f"Not saved. {form.problem or 'The address of this list is too long.'}")
        return redirect(f"{reverse(of)}?{query[: actions.QUERY_CHARS]}")
    mine = {"owner": actor.person, "list": of, "name": form.cleaned_data["name"]}
    row = SavedView.objects.filter(**mine).first() or SavedView(**mine)
    try:
        actions.write_view(actor, row, row.name, query, shared=form.cleaned_data["shared"])
    except StateConflict as error:  # sent twice at one moment
        messages.error(request, f"Not saved. {error}")
    else:
        messages.success(request, f"Saved as “{row.name}”.")
    return redirect(row)


@require_POST
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """Rename a view, or change whether the team sees it."""
    actor, form = Actor.of(request), ViewForm(request.POST)
    row = get_object_or_404(SavedView, pk=pk, owner=actor.person)
    if not form.is_valid():
        messages.error(request, f"Not renamed. {form.problem}")
        return redirect(row)
    try:
        actions.write_view(actor, row, form.cleaned_data["name"], row.query, shared=form.cleaned_data["shared"])
    except StateConflict as error:
        messages.error(request, f"Not renamed. {error}")
    return redirect(row)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a view of the user; the listed runs stay."""
    actor = Actor.of(request)
    row = get_object_or_404(SavedView, pk=pk, owner=actor.person)
    actions.delete_view(actor, row)
    messages.success(request, "The view is deleted. What it listed is as it was.")
    return redirect(row.list)
