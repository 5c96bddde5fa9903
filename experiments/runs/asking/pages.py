"""New run: the form, and the parts of it that update while the user types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import HttpResponseClientRefresh

from experiments.api import example
from experiments.core import access, compatibility
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import InvalidFields, InvalidInput
from experiments.core.params import parse_key
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.number_format import compact, count_noun, dollars, duration
from experiments.models import Role, Run
from experiments.runs import actions
from experiments.runs.asking import choices, questions, terminal
from experiments.runs.asking import form as forms
from experiments.runs.asking.circuits import place_circuit
from experiments.runs.asking.estimate import estimate
from experiments.runs.asking.following import BEFORE, follow, match_task
from experiments.runs.asking.form_page import draw_form
from experiments.runs.asking.several import find_chosen, sweep_address
from experiments.runs.forks import lineage
from experiments.runs.presets.actions import list_presets, read_preset
from workers.record import tasks
from workers.record.limits import DEFAULT_LIMITS


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HtmxRequest) -> HttpResponse:
    """Show the form. A valid one becomes a run, several units lead to a sweep, an invalid one is shown with errors
    beside the fields."""
    actor = Actor.of(request, Role.RESEARCHER)
    names = SystemNameMasker(request.user)
    if request.method == "POST":
        form = forms.QueryForm(request.POST)
        if "look" in request.POST:  # without JavaScript: what suits what was chosen
            looked = _look_again(request.POST, names)
            return render(request, "runs/asking.html", build_context(request, forms.QueryForm(initial=looked), looked))
        # Several units are a sweep, whose form has the last word.
        if address := sweep_address(request.POST.dict(), names):
            return redirect(address)
        try:
            run = actions.ask(actor, form)
        except InvalidFields:
            return render(request, "runs/asking.html", build_context(request, form, form.data))
        return redirect(run)
    initial = _get_initial_values(request)
    context = build_context(request, forms.QueryForm(initial=initial), initial)
    if request.htmx and context["models"]:  # the page that waited for them opens anew, with its scripts
        return HttpResponseClientRefresh()
    return render(request, "runs/asking.html", context)


def _get_initial_values(request: HttpRequest) -> dict[str, Any]:
    """Return the values of an untouched form: those of a run to repeat, or a system that the address names. Raises
    PermissionDenied for a run whose system the person has yet to judge blind."""
    for way in ("from", "like"):
        if run := _run_named(request.GET.get(way, "")):
            if SystemNameMasker(request.user).is_masked(run):
                raise PermissionDenied(
                    f"You are still to judge run {run.pk} unseen, and the form names what it studies. "
                    "Submit or decline your review first, or fork the run."
                )
            return forms.copy_values(run) | ({"parent": run.pk} if way == "from" else {})
    kept = read_preset(request.user, request.GET.get("preset", ""))
    values = forms.get_first_choice(*(request.GET.get(name) or kept.get(name, "") for name in ("model", "task"))) | kept
    named = ("model", "layer", "unit", "task", "dataset", "toolset", "backbone", "backbone_model")
    # The address wins over the preset.
    values |= {name: request.GET[name] for name in named if name in request.GET}
    if circuit := request.GET.get("circuit"):
        values |= _begin_with_circuit(request, circuit)
    values |= match_task(values)
    if values.get("layer"):
        values["question"] = request.GET.get("question") or _suggest_question(values, SystemNameMasker(request.user))
    return values


def _begin_with_circuit(request: HttpRequest, key: str) -> dict[str, Any]:
    """Return the circuit as the selection, with what suits its network; empty, with a message, if it cannot be
    asked."""
    try:
        place = place_circuit({"circuit": key})
    except InvalidInput as error:
        messages.error(request, str(error))
        return {}
    return place | {"circuit": key} | compatibility.find_matching_plugins(place["model"])


def _suggest_question(values: Mapping[str, Any], names: SystemNameMasker) -> str:
    """Return a suitable question for the selection; "" if there is no such unit."""
    layer, units = find_chosen(values, names)
    task = tasks.find_task(str(values.get("task") or tasks.DEFAULT_TASK)).key
    return questions.suggestions(layer, units)[task] if layer and units else ""


def _look_again(given: QueryDict, names: SystemNameMasker) -> dict[str, Any]:
    """Return the selection with what suits it: a question too, unless a person wrote one."""
    # One value for each field: the form has no field with several.
    values: dict[str, Any] = given.dict()
    values |= follow(values)
    layer, units = find_chosen(values, names)
    if layer is None or not units:
        fallback = forms.get_first_choice(str(values.get("model") or ""), str(values.get("task") or ""))
        values |= {
            name: fallback[name] for name in ("layer", "unit") if name in fallback and (layer is None or name == "unit")
        }
    # A question that is still the suggested one follows the selection.
    if _format_value(values.get("question")) in ("", _format_value(values.get("suggested"))):
        values["question"] = _suggest_question(values, names)
    return values


def _run_named(number: Any) -> Run | None:
    """Return the run with this number, from an address or a form; None if there is none."""
    return visible_to(Run.objects.filter(pk=parse_key(str(number)))).first()


def _describe_differences(values: Any, names: SystemNameMasker) -> dict[str, Any]:
    """Return the run that is asked again, and the fields that differ: name, old value, new value."""
    parent = _run_named(values.get("parent") or "")
    if parent is None or names.is_masked(parent):
        return {}
    # A browser sends nothing of a box that is not ticked
    was, now = forms.copy_values(parent), {"ablation": "", **dict(values.items())}
    # The unit as a number, so that "7" and its name are no difference.
    with suppress(InvalidInput):
        layer = forms.find_layer(now.get("model") or "", now.get("layer") or "")
        now["unit"] = forms.find_unit(layer, str(now.get("unit", "")))
    pairs = ((lineage.NAMES[name], _format_value(was[name]), _format_value(now[name])) for name in was if name in now)
    changed = [(name, old or "none", new or "none") for name, old, new in pairs if old != new]
    return {"parent": parent, "changed": changed}


def _format_value(value: Any) -> str:
    """Return a value as a form would send it, so that equal numbers are equal texts."""
    text = "" if value is None else str(value)
    return text.removesuffix(".0").replace("\r\n", "\n").strip()


def build_context(request: HttpRequest, form: forms.QueryForm, values: Any) -> dict[str, Any]:
    """Return what the template shows beside the form."""
    names = SystemNameMasker(request.user)
    chosen = {name: values.get(name) for name in form.fields if name in values}
    chosen |= {name: values[name] for name in BEFORE if name in values}
    shown = choices.read_choices(chosen, names)
    draw_form(form, shown)
    return {
        "form": form,
        "suggested": values.get("suggested") if form.is_bound else _suggest_question(chosen, names),
        "limits": _describe_limits(chosen),
        "presets": list_presets(request.user),
        **_build_commands(request, chosen),
        **_describe_differences(values, names),
        **shown,
    }


@require_safe
def unit(request: HttpRequest) -> HttpResponse:
    """Check the current selection: whether it exists, its exemplars, and what suits a model or a task just chosen."""
    access.require(request, Role.RESEARCHER)
    values: dict[str, Any] = request.GET.dict()
    moved = follow(values)
    values |= moved
    new_model = values.get("shown_model", values.get("model")) != values.get("model")
    context = choices.read_choices(values, SystemNameMasker(request.user))
    other = bool(moved) or new_model or values.get("shown_layer", values.get("layer")) != values.get("layer")
    if other and context.get("problem"):  # what was typed was meant for the layer of before
        context = choices.read_choices(values | {"unit": "0"}, SystemNameMasker(request.user))
    form = forms.QueryForm(initial=values)
    draw_form(form, context)
    context |= {"new_model": new_model, "new_layer": other, "moved": moved, "form": form}
    return render(request, "runs/asking/answer.html", context)


@require_safe
def command(request: HttpRequest) -> HttpResponse:
    """Return the command line of the form's current values, with remarks on the selection."""
    access.require(request, Role.RESEARCHER)
    values: dict[str, Any] = request.GET.dict()
    names = SystemNameMasker(request.user)
    _, units = find_chosen(values, names)
    updates = {
        "oob": True,
        "numbers": units,
        "advice": choices.explain_choice(values, units),
        "estimate": estimate(values, len(units) or 1),
        "limits": _describe_limits(values),
        **_build_commands(request, values),
        **_describe_differences(values, names),
    }
    return render(request, "runs/asking/command.html", updates)


def _describe_limits(values: Mapping[str, Any]) -> list[str]:
    """Return the folded settings, in a few words each."""
    shapes: dict[str, Callable[[float], str]] = {
        "rounds": lambda number: count_noun(int(number), "round"),
        "tokens": lambda number: f"{compact(number)} tokens",
        "cost": dollars,
        "seconds": duration,
    }
    found = []
    for name, shape in shapes.items():
        given = values.get(name, DEFAULT_LIMITS[name])
        number = terminal.read_number(given)
        found.append(
            f"no limit of {name}"
            if given in (None, "")
            else shape(number)
            if isinstance(number, int | float)
            else str(given)[:20]
        )
    return [*found, f"seed {values.get('seed') or 0}", *(["ablation"] if values.get("ablation") else [])]


def _build_commands(request: HttpRequest, values: dict[str, Any]) -> dict[str, str]:
    """Return the command line, and the same request with curl."""
    # A model is named for a backbone that offers several.
    model = compatibility.model_of(str(values.get("backbone") or ""), str(values.get("backbone_model") or ""))
    values = values | {"backbone_model": model}
    curl = example.curl(request.build_absolute_uri(f"{reverse('api:root')}runs"), "POST", terminal.request_body(values))
    return {"command": terminal.command_line(values), "curl": curl}
