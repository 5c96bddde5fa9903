"""Pages of studies: the list, a study as its readers see it, its form; adding chosen units and runs, deleting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.core import access, blindness
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.core.paging import Page
from experiments.core.params import parse_key, parse_number
from experiments.core.system_names import SystemNameMasker
from experiments.display.form_fields import add_refusal
from experiments.display.run_pictures import find_pictures
from experiments.models import Run, Study, StudyItem
from experiments.runs.filter_words import describe_filter
from experiments.studies import actions, lists, parts
from experiments.studies.drafts import MAX_ITEMS, ItemDraft, read_drafts
from experiments.studies.forms import DownloadStudy, EditItem, EditStudy
from experiments.units.chosen import ChooseTarget, put_together
from experiments.units.tiles import read_tiles
from workers.record.events import Audience

PAGE_SIZE = 50


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the studies that the query selects, newest first."""
    names = SystemNameMasker(access.require(request))
    found = lists.studies_from(request.GET.dict())
    page = Page.of(request.GET.dict(), found.rows.count(), PAGE_SIZE, *lists.FILTERS)
    context = {
        "found": found,
        "words": describe_filter("studies", found.values),
        "rows": lists.draw_rows(found.rows[page.start : page.end], names),
        "page": page,
        "form": ChooseTarget(actions.TARGET, ()) if (access.role_in(request) or 0) >= actions.CHANGES else None,
        "breadcrumbs": [("Studies", reverse("studies"))],
    }
    return render(request, "studies/index.html", context)


@require_safe
def study(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a study as its readers see it, page by page."""
    user = access.require(request)
    row, names = get_object_or_404(lists.list_studies(), pk=pk), SystemNameMasker(user)
    items = lists.list_items(row, names)
    page = Page.of(request.GET.dict(), len(items), parts.PAGE_SIZE)
    # A label check would bias a reviewer who has still to judge the run.
    hidden = frozenset(blindness.list_blinded_runs(user))
    reader = parts.StudyReader(names, Audience.TEAM, lambda run: run.get_absolute_url(), hides_checks=hidden)
    may_ask = (access.role_in(request) or 0) >= actions.CHANGES
    context = {
        "study": row,
        "parts": parts.draw_parts(items[page.start : page.end], reader, page.first),
        "page": page,
        "team": True,
        # What readers of a link would miss, which the team should know before sharing.
        "left_out": row.items.count() - len(lists.list_items(row, SystemNameMasker(None))),
        "may_share": may_ask,
        "form": DownloadStudy(),
        "may_change": may_ask and access.may_change(user, row.owner_id),
        "breadcrumbs": [("Studies", reverse("studies")), (row.title, row.get_absolute_url())],
    }
    return render(request, "studies/study.html", context)


# --- actions ---


@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest) -> HttpResponse:
    """Ask which study the chosen units and runs go to; with a title or a study, add them there."""
    actor = Actor.of(request, actions.CHANGES)
    # Links on other pages lead here with the items in the address.
    given = request.POST if request.method == "POST" else request.GET
    drafts = read_drafts(given)
    if request.method != "POST":
        return _render_add(request, actor, given, drafts)
    try:
        row = _put_together(request, actor, drafts)
    except InvalidInput as refusal:
        return _render_add(request, actor, given, drafts, refusal)
    return redirect(row) if row else _render_add(request, actor, given, drafts)


def _put_together(request: HttpRequest, actor: Actor, drafts: list[ItemDraft]) -> Study | None:
    """Return the study that now has these items; None if the form does not say which."""
    return put_together(
        request,
        actions.TARGET,
        Study,
        len(drafts),
        lambda title: actions.create_study(actor, title, drafts),
        lambda pk: actions.add_items(actor, pk, drafts),
    )


def _render_add(
    request: HttpRequest,
    actor: Actor,
    given: QueryDict,
    drafts: Sequence[ItemDraft],
    refusal: InvalidInput | None = None,
) -> HttpResponse:
    """Show the chosen units and runs, each of which can be left out, and the studies for them."""
    shown, names = drafts[:MAX_ITEMS], SystemNameMasker(actor.user)
    runs = [each.run for each in shown if each.run]
    pictures = find_pictures(run.pk for run in runs)
    form = ChooseTarget(actions.TARGET, lists.list_studies_for(actor.person, actor.role), given)
    if refusal:
        add_refusal(form, refusal)
    context = {
        "tiles": read_tiles([each.place for each in shown if each.place], names),
        "runs": [(run, names.of(run), pictures.get(run.pk)) for run in runs],
        "count": len(drafts),
        "most": MAX_ITEMS,
        "form": form,
        "target": actions.TARGET,
        "breadcrumbs": [("Studies", reverse("studies")), ("Add", "")],
    }
    return render(request, "studies/add.html", context, status=400 if refusal else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Edit title, text, captions and order; remove the ticked items."""
    actor, row = Actor.of(request, actions.CHANGES), get_object_or_404(Study, pk=pk)
    # Also before the form is shown, not only when it is sent.
    actor.require_own("created this study", row.owner_id)
    if request.method != "POST":
        return _render_edit(request, actor, row, EditStudy(initial={"title": row.title, "text": row.text}))
    title, text = (request.POST.get(name, "") for name in ("title", "text"))
    try:
        actions.edit_study(actor, pk, title, text, _read_edits(request.POST, list(row.items.all())))
    except InvalidInput as refusal:
        form = EditStudy(request.POST)
        add_refusal(form, refusal)
        return _render_edit(request, actor, row, form, status=400)
    messages.success(request, "Saved.")
    return redirect(row)


def _read_edits(given: QueryDict, items: Sequence[StudyItem]) -> list[actions.ItemEdit]:
    """Return the remaining items, in the order of the typed numbers; items with the same number keep their order."""
    removed = {parse_key(typed) for typed in given.getlist("remove")}
    kept = [each for each in items if each.pk not in removed]

    def rank(item: StudyItem) -> int:
        typed = parse_number(given.get(f"position-{item.pk}", ""))
        # `sorted` is stable, so items with the same number keep their order.
        return item.position if typed is None else typed

    return [actions.ItemEdit(each.pk, given.get(f"caption-{each.pk}", each.caption)) for each in sorted(kept, key=rank)]


def _render_edit(request: HttpRequest, actor: Actor, row: Study, form: EditStudy, status: int = 200) -> HttpResponse:
    names = SystemNameMasker(actor.user)
    items = lists.list_items(row, names)
    pictures = lists.find_item_pictures(items, names)
    runs = Run.objects.filter(pk__in=[each.run_id for each in items if each.run_id])
    questions = dict(runs.order_by().values_list("pk", "question"))
    context: dict[str, Any] = {
        "study": row,
        "items": [
            (EditItem(each, number, request.POST), questions.get(each.run_id or 0, ""), pictures.get(each.pk, ""))
            for number, each in enumerate(items, 1)
        ],
        "form": form,
        "breadcrumbs": [("Studies", reverse("studies")), (row.title, row.get_absolute_url()), ("Edit", "")],
    }
    return render(request, "studies/edit.html", context, status=status)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a study; its units and runs stay."""
    actor = Actor.of(request, actions.CHANGES)
    row = get_object_or_404(Study, pk=pk)
    actions.delete_study(actor, pk)
    messages.success(request, f"Deleted “{row.title}”. Its units and runs are as they were.")
    return redirect("studies")
