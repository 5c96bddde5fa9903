"""The Overview, the settings pages of models, datasets, jobs and workers, and the status that every page polls.

An open Overview polls and sends the fingerprints of its parts. Only changed parts are sent, so that nothing else
moves on the screen.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from hashlib import blake2s
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused, InvalidInput
from experiments.core.system_names import SystemNameMasker
from experiments.display.answers import read_answer
from experiments.display.form_fields import add_refusal
from experiments.display.label_checks import describe_check
from experiments.installation import actions, activity, dashboard, lists, queue_status
from experiments.installation.catalogue_forms import AddDataset, AddIndex, AddModel
from experiments.installation.form import NewAutoencoder
from experiments.judging.waiting import list_waiting
from experiments.models import (
    CausalCheck,
    Dataset,
    Job,
    JobKind,
    Layer,
    Role,
    Run,
    SparseAutoencoderRow,
    VisionModelRow,
)
from experiments.reviews import lists as review_lists

PARTS = ("now", "waiting", "recent", "workers")
"""Parts of the Overview, each a template. The latest answer is a further part."""
LATEST, DOTS = "latest", 40
"""Name of the part with the latest answer, and number of dots in a strip of its plot."""
PAGES = {
    JobKind.MODEL: "settings-models",
    JobKind.DATASET: "settings-datasets",
    JobKind.INDEX: "settings-datasets",
    JobKind.EXPORT: "exports",
    JobKind.IMPORT: "imports",
    JobKind.JUDGE: "pairwise",
    JobKind.EVALUATION: "evaluations",
    JobKind.SWEEP: "sweeps",
    JobKind.SPARSE: "settings-autoencoders",
    JobKind.MEASURE: "settings-autoencoders",
    JobKind.CAUSAL: "units",
    JobKind.GRAPH: "circuits",
    JobKind.CIRCUIT: "circuit-searches",
}
"""Page that lists jobs of each kind."""


# --- the Overview ---


@require_safe
def overview(request: HtmxRequest) -> HttpResponse:
    """Show the Overview. htmx gets the parts that have changed, or an empty response."""
    access.require(request)
    known = {*request.GET.getlist("seen")} if request.htmx else set()
    parts = _draw_parts(request, known)
    if not request.htmx:
        now, queue_status, recent, workers, latest = parts
        context = {"columns": [(now, latest, recent), (queue_status, workers)]} | _read_weeks(request)
        return render(request, "installation/overview.html", context)
    changed = [part for part in parts if f"{part['name']}:{part['print']}" not in known]
    context = {"parts": changed, "oob": True}
    return render(request, "installation/overview/parts.html", context) if changed else HttpResponse(status=204)


def _read_weeks(request: HttpRequest) -> dict[str, Any]:
    """Return the weekly activity. It changes slowly, so the page loads it once."""
    found = activity.read_activity()
    if found.is_empty:
        return {}
    by_person = (access.role_in(request) or Role.VIEWER) >= Role.RESEARCHER
    return {"activity": found, "activity_plots": activity.draw_activity(found), "by_person": by_person}


def _draw_parts(request: HttpRequest, known: Container[str]) -> list[dict[str, Any]]:
    """Return every part with name, fingerprint and HTML. The latest answer is drawn only if it is not `known`,
    because it costs more than all others."""
    role = access.role_in(request) or Role.VIEWER
    names = SystemNameMasker(request.user)
    context = dashboard.read_dashboard() | {
        "names": names,
        "may_ask": role >= Role.RESEARCHER,
        "to_review": review_lists.list_unfinished(request.user),
        "to_judge": list_waiting(access.require(request), only_left=True) if role >= Role.REVIEWER else [],
    }
    html = {name: render_to_string(f"installation/overview/{name}.html", context) for name in PARTS}
    prints = {name: blake2s(text.encode(), digest_size=8).hexdigest() for name, text in html.items()}
    latest = _draw_latest(context["latest"], names, known, acts=role >= Role.RESEARCHER)
    return [*({"name": name, "print": prints[name], "html": html[name]} for name in PARTS), latest]


def _draw_latest(run: Run | None, names: SystemNameMasker, known: Container[str], *, acts: bool) -> dict[str, Any]:
    """Draw the newest answer as a card. Its fingerprint covers the run, its check, and what is hidden from the
    viewer."""
    shown = run and (run.pk, run.ended, describe_check(run.label_check), names.is_masked(run), acts)
    found = {"name": LATEST, "print": blake2s(repr(shown).encode(), digest_size=8).hexdigest(), "html": ""}
    if run and f"{LATEST}:{found['print']}" not in known:
        answer = read_answer(run, names, dots=DOTS)
        context = {"answer": answer, "run": run, "team": True, "names": names, "acts": acts, "compact": True}
        found["html"] = render_to_string("installation/overview/latest.html", context)
    return found


@require_safe
def show_status(request: HttpRequest) -> HttpResponse:
    """Return the number of active runs and whether a worker is alive. Every open page polls this."""
    access.require(request)
    models = list(VisionModelRow.objects.filter(available=True).values_list("name", flat=True))
    return render(request, "display/pulse.html", {"worker": worker_status.has_worker(), "models": models})


# --- models ---


@require_safe
def models(request: HtmxRequest) -> HttpResponse:
    """Show models, backbones and toolsets. htmx gets the jobs, with the list once they are done."""
    role = access.role_of(access.require(request)) or Role.VIEWER
    fragment = request.htmx.target == "work"
    template = "installation/work.html" if fragment else "installation/models.html"
    return render(request, template, lists.models(role, AddModel()))


@require_safe
def layers(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the layers of one model, loaded when a user opens them."""
    access.require(request)
    model = get_object_or_404(VisionModelRow, pk=pk)
    found = Layer.objects.filter(model=model).defer("names")
    return render(request, "installation/layers.html", {"model": model, "layers": found})


@require_POST
def add_model(request: HttpRequest) -> HttpResponse:
    """Make a worker inspect a model. The page shows the result."""
    actor, form = Actor.of(request, Role.ADMIN), AddModel(request.POST)
    try:
        actions.add_model(actor, request.POST.get("name", "").strip())
    except ActionRefused as refused:
        add_refusal(form, refused)
        return render(request, "installation/models.html", lists.models(Role.ADMIN, form), status=400)
    return redirect("settings-models")


@require_POST
def remove_model(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove a model that a user added; its runs stay."""
    actor = Actor.of(request, Role.ADMIN)
    actions.remove(actor, get_object_or_404(VisionModelRow, pk=pk, added__isnull=False))
    return redirect("settings-models")


@require_POST
def refresh_catalogue(request: HttpRequest) -> HttpResponse:
    """Make a worker check every plug-in again."""
    actions.refresh_catalogue(Actor.of(request, Role.RESEARCHER))
    return redirect("settings-models")


# --- datasets ---


@require_safe
def datasets(request: HtmxRequest) -> HttpResponse:
    """Show datasets. htmx gets the jobs, with the list once they are done, or the layers of a chosen model."""
    role = access.role_of(access.require(request)) or Role.VIEWER
    templates = {"work": "installation/work.html", "index-layers": "installation/index_layers.html"}
    template = templates.get(request.htmx.target or "", "installation/datasets.html")
    return render(request, template, lists.datasets(role, AddIndex.prefill(request.GET), AddDataset()))


@require_POST
def add_dataset(request: HttpRequest) -> HttpResponse:
    """Make a worker inspect a folder on its disks. The page shows the result."""
    actor = Actor.of(request, Role.ADMIN)
    path, label = request.POST.get("place", "").strip(), request.POST.get("label", "").strip()
    follow_links = bool(request.POST.get("follow_links"))
    try:
        actions.add_dataset(actor, path, label, follow_links=follow_links)
    except ActionRefused as refused:
        form = AddDataset(request.POST)
        add_refusal(form, refused)
        context = lists.datasets(Role.ADMIN, AddIndex.prefill(request.GET), form)
        return render(request, "installation/datasets.html", context, status=400)
    return redirect("settings-datasets")


@require_POST
def remove_dataset(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove a dataset that a user added; its images stay."""
    actor = Actor.of(request, Role.ADMIN)
    actions.remove(actor, get_object_or_404(Dataset, pk=pk, added__isnull=False))
    return redirect("settings-datasets")


@require_POST
def add_index(request: HttpRequest) -> HttpResponse:
    """Make a worker measure all units of some layers over a dataset."""
    actor, sent = Actor.of(request, Role.RESEARCHER), request.POST
    dataset, model, insist = sent.get("dataset", ""), sent.get("model", ""), bool(sent.get("insist"))
    try:
        actions.add_index(actor, dataset, model, sent.getlist("layers"), insist=insist)
    except ActionRefused as refused:
        form = AddIndex(sent)
        add_refusal(form, refused)
        context = lists.datasets(actor.role or Role.RESEARCHER, form, AddDataset())
        return render(request, "installation/datasets.html", context, status=400)
    return redirect("settings-datasets")


# --- sparse auto-encoders ---


@require_safe
def autoencoder(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the report of an auto-encoder. htmx gets the jobs, with the report once they are done."""
    role = access.role_of(access.require(request)) or Role.VIEWER
    row = get_object_or_404(SparseAutoencoderRow.objects.select_related("model"), pk=pk)
    template = "installation/work.html" if request.htmx.target == "work" else "installation/autoencoder.html"
    return render(request, template, lists.autoencoder(role, row))


@require_POST
def measure_autoencoder(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a worker measure an auto-encoder. Its page shows the result."""
    actor = Actor.of(request, Role.RESEARCHER)
    row = get_object_or_404(SparseAutoencoderRow.objects.select_related("model"), pk=pk)
    try:
        actions.measure_autoencoder(actor, row)
    except ActionRefused as error:
        messages.error(request, str(error))
    return redirect("settings-autoencoder", pk)


@require_safe
def autoencoders(request: HtmxRequest) -> HttpResponse:
    """Show auto-encoders and the form. htmx gets the jobs, with the list once they are done, or the form's defaults
    for a chosen model or layer."""
    role = access.role_of(access.require(request)) or Role.VIEWER
    templates = {"work": "installation/work.html", "sparse-choice": "installation/sparse_choice.html"}
    template = templates.get(request.htmx.target or "", "installation/autoencoders.html")
    return render(request, template, lists.autoencoders(role, NewAutoencoder.prefill(request.GET)))


@require_POST
def train_autoencoder(request: HttpRequest) -> HttpResponse:
    """Make a worker train a sparse auto-encoder, or one for each k. The page shows the result."""
    actor, form = Actor.of(request, Role.RESEARCHER), NewAutoencoder(request.POST)
    if form.is_valid():
        try:
            actions.train_several(actor, form.wishes)
            return redirect("settings-autoencoders")
        except InvalidInput as error:
            add_refusal(form, error)
    context = lists.autoencoders(actor.role or Role.RESEARCHER, form)
    return render(request, "installation/autoencoders.html", context, status=400)


# --- work and workers ---


@require_POST
def stop_job(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop a job. A running one stops after its current step; its finished work is kept."""
    return _do(request, pk, actions.stop_job)


@require_POST
def resume_job(request: HttpRequest, pk: int) -> HttpResponse:
    """Resume a stopped or failed job."""
    return _do(request, pk, actions.resume_job)


def _do(request: HttpRequest, pk: int, act: Callable[[Actor, Job], None]) -> HttpResponse:
    """Apply an action to a job and redirect to the page that lists it, with the reason if the action was refused."""
    actor, job = Actor.of(request), get_object_or_404(Job, pk=pk)
    try:
        act(actor, job)
    except ActionRefused as error:
        messages.error(request, str(error))
    # A causal check is shown on the page of its unit, because there is no list of them
    return redirect(CausalCheck.objects.filter(job=job).first() or PAGES[JobKind(job.kind)])


@require_safe
def workers(request: HtmxRequest) -> HttpResponse:
    """Show the queue and the workers with their models and jobs. htmx polls the lists alone."""
    viewer = access.require(request)
    workers = worker_status.alive_workers()
    rows = None if workers is None else [worker_status.describe_worker(each) for each in workers]
    claiming = sum(each["state"] in ("ready", "busy") for each in rows or ())
    template = "installation/workers_now.html" if request.htmx else "installation/workers.html"
    context = {"workers": rows, "claiming": claiming, "waiting": queue_status.read_waiting(SystemNameMasker(viewer))}
    return render(request, template, context)
