"""Saved views of the list of runs: keep one under a name, rename it, share it, let it go."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from experiments.core import access, audit
from experiments.core.audit import Verb
from experiments.models import SavedView
from experiments.models.member import Role

QUERY_CHARS = 2_000


class ViewForm(forms.Form):
    """A name, and whether the team sees it."""

    name = forms.CharField(max_length=60, error_messages={"required": "Give the view a name."})
    shared = forms.BooleanField(required=False)


@require_POST
@transaction.atomic
def save(request: HttpRequest) -> HttpResponse:
    """Keep the state of the list. A name of one's own that is there already is given the new state."""
    owner = access.require(request)
    form = ViewForm(request.POST)
    query = state(request.POST.get("query", ""))
    access.require(request, to_write(shared="shared" in request.POST))
    if not form.is_valid() or len(query) > QUERY_CHARS:
        messages.error(request, f"Not saved. {first_error(form) or 'The address of this list is too long.'}")
        return redirect(f"{reverse('runs')}?{query[:QUERY_CHARS]}")
    data = {"query": query, "shared": form.cleaned_data["shared"]}
    view, _ = SavedView.objects.update_or_create(owner=owner, name=form.cleaned_data["name"], defaults=data)
    audit.record(request, Verb.VIEW_SAVED, view, shared=view.shared)
    messages.success(request, f"Saved as “{view.name}”.")
    return redirect(view)


@require_POST
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """Another name, or shared otherwise."""
    owner = access.require(request)
    view = get_object_or_404(SavedView, pk=pk, owner=owner)
    form = ViewForm(request.POST)
    access.require(request, to_write(shared="shared" in request.POST))
    if not form.is_valid():
        messages.error(request, f"Not renamed. {first_error(form)}")
        return redirect(view)
    view.name, view.shared = form.cleaned_data["name"], form.cleaned_data["shared"]
    try:
        with transaction.atomic():
            view.save()
            audit.record(request, Verb.VIEW_RENAMED, view, shared=view.shared)
    except IntegrityError:
        messages.error(request, f"Not renamed. You have a view “{view.name}” already.")
    return redirect(view)


@require_POST
@transaction.atomic
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Let a view of one's own go; the runs stay."""
    owner = access.require(request)
    view = get_object_or_404(SavedView, pk=pk, owner=owner)
    audit.record(request, Verb.VIEW_DELETED, view)
    view.delete()
    messages.success(request, "The view is deleted. The runs are as they were.")
    return redirect("runs")


def to_write(*, shared: bool) -> Role:
    """The role it takes to keep a view: what the whole team is shown is not for those who only look on."""
    return Role.RESEARCHER if shared else Role.VIEWER


def state(query: str) -> str:
    """A query string without the number of the page."""
    params = QueryDict(query[: 2 * QUERY_CHARS], mutable=True)
    params.pop("page", None)
    return params.urlencode()


def first_error(form: forms.BaseForm) -> str:
    return next((str(errors[0]) for errors in form.errors.values()), "")
