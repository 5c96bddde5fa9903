"""Pages of label checks: one check, the mark of a run's check, and starting one."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.audit import Verb, list_authors
from experiments.core.errors import ActionRefused, InvalidInput
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.form_fields import add_refusal
from experiments.display.label_checks import HEAVY
from experiments.label_checks import actions, lists
from experiments.label_checks.evidence import read_evidence
from experiments.label_checks.forms import StartCheck
from experiments.label_checks.questions import (
    MAX_JUDGES,
    count_answers,
    count_judged,
    count_wanted,
    list_judges,
    serve_question,
)
from experiments.label_checks.requests import PEOPLE
from experiments.models import Label, LabelCheck, Role, Run, Unit
from workers import registry
from workers.record.evaluations import CAVEAT

STATE = "check-state"
RUNS = 5
"""Maximum number of runs with this label that a page lists."""


@require_safe
def check(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one label check: main scores, surprising images, generated images."""
    user = access.require(request)
    row = get_object_or_404(visible_to(LabelCheck.objects.select_related("unit__layer__model")), pk=pk)
    names = SystemNameMasker(user)
    place = lists.place_of(row)
    # Deleting a unit deletes its checks
    assert place is not None, "a check goes with its unit"
    # The page is open to all; only the name and link of a hidden unit are replaced
    hides = names.masks_unit(*place)
    called = registry.blind_name(registry.BLINDED_KIND, *place) if hides else str(row.unit)
    role = access.role_in(request) or Role.VIEWER
    context: dict[str, Any] = {
        "breadcrumbs": [
            ("Units", reverse("units")) if hides else (called, reverse("unit", args=place)),
            ("Label check", row.get_absolute_url()),
        ],
        "check": row,
        "called": called,
        "unit_page": "" if hides else reverse("unit", args=place),
        "runs": row.runs.order_by("-pk")[:RUNS],
        "items": row.items.select_related("evaluation").order_by("-pk")[:RUNS],
        "others": LabelCheck.objects.filter(unit=row.unit, text=row.text).exclude(pk=pk).defer(*HEAVY)[:RUNS],
        **_describe_people(row),
        "may_judge": role >= Role.REVIEWER,
        "may_ask": role >= actions.STARTS,
        "may_finish": role >= actions.STARTS and access.may_change(user, *list_authors(row, Verb.LABEL_CHECKED)),
        "caveat": CAVEAT,
        **read_evidence(row, names),
    }
    return render(request, "label_checks/check.html", context)


def _describe_people(row: LabelCheck) -> dict[str, Any]:
    """Return the progress of people who judge its images, or whether there are answers."""
    if not row.waits_for_people:
        return {"has_answers": row.questions.exists()}
    progress = {"judged": count_judged(row), "answers": count_answers(row)}
    return progress | {"wanted": count_wanted(row), "judges": list_judges(row)}


@require_safe
def image(request: HttpRequest, pk: int, question: int) -> HttpResponse:
    """Send an image to judge without its key. Raises Http404 if people are no longer asked."""
    access.require(request, Role.REVIEWER)
    return serve_question(request, pk, question)


@require_safe
def mark_of_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the mark beside a run's conclusion."""
    access.require(request)
    run = get_object_or_404(Run.objects.select_related("label_check"), pk=pk)
    return render(request, "label_checks/run_mark.html", {"run": run})


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest, run: int | None = None, label: int | None = None) -> HttpResponse:
    """Show what would be checked, a run's conclusion or a label; on POST start the check. Raises Http404 if it does not
    exist."""
    actor = Actor.of(request, actions.STARTS)
    of_run, of_label = _find_subject(run, label)
    names = SystemNameMasker(actor.person)
    form = StartCheck(request.POST if request.method == "POST" else None)
    if request.method == "POST":
        try:
            if of_run is not None:
                return redirect(actions.check_run(actor, of_run, _read_people(request.POST)))
            assert of_label is not None
            return redirect(actions.check_label(actor, _unit_of(of_label), of_label.text, _read_people(request.POST)))
        except ActionRefused as refusal:
            add_refusal(form, refusal)
    context = {
        "breadcrumbs": [("Check a label", request.path)],
        "run": of_run,
        "label": of_label,
        "labels": of_run.labels if of_run else [of_label.text] if of_label else [],
        "called": _name_subject(of_run, of_label, names),
        "form": form,
    }
    return render(request, "label_checks/check_new.html", context, status=400 if form.errors else 200)


def _read_people(given: QueryDict) -> int:
    """Return the number of judges per image, 0 for the default judge. Raises InvalidInput."""
    if given.get("judge") != PEOPLE:
        return 0
    typed = given.get("judges", "1").strip()
    if not typed.isascii() or not typed.isdecimal() or int(typed[:9]) < 1:
        raise InvalidInput(f"“{typed[:40]}” is not a number of people: write 1 to {MAX_JUDGES}.", "judges")
    return int(typed[:9])


def _find_subject(run: int | None, label: int | None) -> tuple[Run | None, Label | None]:
    """Return the run or the label; for a label that a run gave, the run."""
    if run is not None:
        return get_object_or_404(Run.objects.select_related("label_check"), pk=run), None
    row = get_object_or_404(visible_to(Label.objects.select_related("label_check", "run")), pk=label)
    # A run's labels are alternatives, so they are checked together
    if row.run_id and row.source == "run":
        return row.run, None
    _unit_of(row)
    return None, row


def _unit_of(label: Label) -> Unit:
    unit = label.units.select_related("layer__model").order_by("pk").first()
    if unit is None:
        raise Http404("The catalogue has no unit of this label any more.")
    return unit


def _name_subject(run: Run | None, label: Label | None, names: SystemNameMasker) -> str:
    if run is not None:
        return names.of(run)
    assert label is not None
    unit = _unit_of(label)
    place = (unit.layer.model.name, unit.layer.name, unit.number)
    return registry.blind_name(registry.BLINDED_KIND, *place) if names.masks_unit(*place) else str(unit)
