"""New query: the form, and the parts of it that answer while one types."""

from __future__ import annotations

from typing import Any

from django.core.cache import cache
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from experiments import access, forms, live
from experiments.models import Layer, Model, Run, Unit
from experiments.models.member import Role
from workers.jobs import queue

EARLIER = 3
"""Runs on the same unit that are shown beside its exemplars."""
ASK_AGAIN = 30
"""Seconds after which exemplars that have not come are asked for again: Redis may have lost the request."""


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """The form; a good one becomes a run, a bad one comes back with errors beside the fields."""
    owner = access.require(request, Role.RESEARCHER)
    if request.method == "POST":
        form = forms.QueryForm(request.POST)
        if form.is_valid():
            with transaction.atomic():
                run = form.save(owner)
                queue.enqueue(run.pk)
            return redirect(run)
        return render(request, "query.html", around(form, form.data))
    initial = beginning(request)
    return render(request, "query.html", around(forms.QueryForm(initial=initial), initial))


def beginning(request: HttpRequest) -> dict[str, Any]:
    """The values an untouched form starts from: a run to ask again, or a system named in the address."""
    before = request.GET.get("like", "")
    known = before.isascii() and before.isdigit() and len(before) < 19
    if known and (run := Run.objects.filter(pk=int(before)).first()):
        return forms.like(run)
    values = forms.first_choice()
    values |= {name: request.GET[name] for name in ("model", "layer", "unit", "task") if name in request.GET}
    if values.get("layer"):
        task = values.get("task") if values.get("task") in forms.SUGGESTIONS else "describe"
        values["question"] = forms.suggestions(values["model"], values["layer"], values["unit"])[str(task)]
    return values


def around(form: forms.QueryForm, values: Any) -> dict[str, Any]:
    """What the template shows beside the form."""
    return {
        "form": form,
        "lines": forms.TASK_LINES,
        "command": forms.command_line({name: values.get(name) for name in form.fields}),
        **picked(values.get("model"), values.get("layer"), values.get("unit")),
    }


@require_safe
def unit(request: HttpRequest) -> HttpResponse:
    """The unit that is picked at this moment: whether it exists, and its exemplars."""
    access.require(request, Role.RESEARCHER)
    context = picked(request.GET.get("model"), request.GET.get("layer"), request.GET.get("unit"))
    context["changed"] = request.headers.get("HX-Trigger-Name") or "system"
    return render(request, "query/answer.html", context)


@require_safe
def command(request: HttpRequest) -> HttpResponse:
    """The command line that asks what the form says now."""
    access.require(request, Role.RESEARCHER)
    return render(request, "query/command.html", {"command": forms.command_line(request.GET.dict())})


def picked(model: str | None, layer: str | None, number: Any) -> dict[str, Any]:
    """Models, the layers of the one that is picked, and the unit with its exemplars or what is wrong with it."""
    models = list(Model.objects.all())
    if not models:
        return {"models": [], "waiting": live.reported("worker")}
    chosen = next((each for each in models if each.name == model), models[0])
    layers = list(chosen.layers.all())
    place = next((each for each in layers if each.name == layer), layers[-1] if layers else None)
    context: dict[str, Any] = {"models": models, "model": chosen, "layers": layers, "layer": place, "number": number}
    if place is None:
        return context | {"problem": f"{chosen.name} has no layers."}
    digits = str(number if number is not None else "").strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return context | {"problem": f"Choose a unit: a whole number from 0 to {place.units - 1}."}
    _, problem = forms.system_problem(chosen.name, place.name, int(digits))
    if problem:
        return context | {"problem": problem}
    return context | known_unit(place, int(digits))


def earlier(layer: Layer, number: int) -> list[Run]:
    """The newest runs on this unit that ended in labels."""
    runs = Run.objects.filter(model=layer.model.name, layer=layer.name, unit=number, label_set__isnull=False)
    return list(runs.distinct()[:EARLIER])


def known_unit(layer: Layer, number: int) -> dict[str, Any]:
    """The unit, its exemplars once there are some, and the questions that fit it."""
    found, _ = Unit.objects.get_or_create(layer=layer, number=number)
    if not found.indexed and cache.add(f"asked-for-exemplars:{found.pk}", True, ASK_AGAIN):
        queue.ask_for_exemplars(found.pk)
    exemplars = list(found.exemplars.all()) if found.indexed else []
    return {
        "unit": found,
        "exemplars": exemplars,
        "threshold": sum(each.activation for each in exemplars) / len(exemplars) if exemplars else None,
        "progress": None if found.indexed else live.reported(f"unit:{found.pk}"),
        "suggestions": forms.suggestions(layer.model.name, layer.name, number),
        "earlier": earlier(layer, number),
    }
