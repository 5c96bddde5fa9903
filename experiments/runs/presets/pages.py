"""Presets: list them, save the settings of the New run form, rename, share, delete."""

from __future__ import annotations

from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.core.actors import Actor
from experiments.core.errors import InvalidFields, StateConflict
from experiments.models import Preset, Role
from experiments.runs.presets import actions

MAX_QUESTION_CHARS = 1_500
"""Characters of a question that is carried on in an address."""


class PresetForm(forms.Form):
    """A name, and whether the team sees it."""

    name = forms.CharField(max_length=60, error_messages={"required": "Give the preset a name."})
    shared = forms.BooleanField(label="Share with the team", required=False)


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """List all presets. Sent the New run form, ask for a name; sent a name too, save it."""
    actor = Actor.of(request, Role.RESEARCHER)
    context = {
        "form": PresetForm(),
        "presets": [(row, _draw_change(row)) for row in actions.list_presets(actor.person)],
        "settings": actions.choose_fields(request.POST.dict()),
        "carried": {name: request.POST.get(name, "") for name in ("question", "unit")},
        "saves": request.method == "POST",
    }
    if "name" not in request.POST:
        return render(request, "runs/presets/page.html", context)
    form = PresetForm(request.POST)
    if not form.is_valid():
        return render(request, "runs/presets/page.html", context | {"form": form}, status=400)
    mine = {"owner": actor.person, "name": form.cleaned_data["name"]}
    # The same name again replaces the user's own preset.
    row = Preset.objects.filter(**mine).first() or Preset(**mine)
    try:
        actions.write_preset(actor, row, row.name, request.POST.dict(), shared=form.cleaned_data["shared"])
    except InvalidFields as error:
        for name, found in error.fields.items():
            form.add_error(None, f"{name.replace('_', ' ').capitalize()}: {' '.join(found)}")
        return render(request, "runs/presets/page.html", context | {"form": form}, status=400)
    except StateConflict as error:  # sent twice at one moment
        messages.error(request, f"Not saved. {error}")
    else:
        messages.success(request, f"Saved as “{row.name}”.")
    return redirect(_build_return_url(request, row))


def _draw_change(row: Preset) -> PresetForm:
    """Return the form that renames or shares a preset."""
    form = PresetForm(initial={"name": row.name, "shared": row.shared}, auto_id=f"id_{row.pk}_%s")
    form.fields["name"].label, form.fields["shared"].label = f"Name of {row.name}", "Shared"
    return form


def _build_return_url(request: HttpRequest, row: Preset) -> str:
    """Return the address of the New run form with this preset, and the question and unit that were typed."""
    typed = {name: request.POST.get(name, "") for name in ("question", "unit")}
    # Longer questions would make the address too long for servers.
    carried = {name: value for name, value in typed.items() if value and len(value) <= MAX_QUESTION_CHARS}
    return f"{row.get_absolute_url()}&{urlencode(carried)}" if row.pk and carried else row.get_absolute_url()


@require_POST
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Rename a preset, or change whether the team sees it."""
    actor, form = Actor.of(request, Role.RESEARCHER), PresetForm(request.POST)
    row = get_object_or_404(Preset, pk=pk, owner=actor.person)
    if not form.is_valid():
        messages.error(request, "Not renamed. Give the preset a name of at most 60 characters.")
        return redirect("presets")
    try:
        actions.write_preset(actor, row, form.cleaned_data["name"], row.settings, shared=form.cleaned_data["shared"])
    except (InvalidFields, StateConflict) as error:
        messages.error(request, f"Not changed. {error}")
    return redirect("presets")


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a preset of the user; runs stay."""
    actor = Actor.of(request, Role.RESEARCHER)
    actions.delete_preset(actor, get_object_or_404(Preset, pk=pk, owner=actor.person))
    messages.success(request, "The preset is deleted. Runs started from it are as they were.")
    return redirect("presets")
