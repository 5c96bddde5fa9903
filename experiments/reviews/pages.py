"""Pages of review: list, create and close queues; show one queue with its items and reviews; add a run to a queue."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.blindness import MAKES_QUEUES, queues_of
from experiments.core.display_name import person
from experiments.core.errors import ActionRefused, InvalidInput
from experiments.core.paging import Page
from experiments.core.params import parse_key
from experiments.core.system_names import SystemNameMasker
from experiments.display import verdicts
from experiments.display.narrowing import list_fields
from experiments.display.run_pictures import find_pictures
from experiments.display.tables import ListColumn, choose_columns
from experiments.models import Review, ReviewQueue, ReviewState, Role
from experiments.reviews import actions, lists, queue_lists
from experiments.runs import lists as run_lists
from experiments.runs.filter_words import describe_filter
from workers import registry

PER_PAGE = 25
QUEUES_PER_PAGE = 30
QUEUE_COLUMNS = (
    ListColumn("number", "Number", kind="number"),
    ListColumn("status", "Status"),
    ListColumn("complete", "Complete", "complete"),
    ListColumn("verdicts", "Verdicts"),
    ListColumn("check", "Label check", wide=True),
    ListColumn("place", "Layers", kind="unit-cell"),
    ListColumn("backbone", "Agent", kind="secondary", wide=True),
    ListColumn("each", "Reviews each", kind="number", wide=True),
    ListColumn("owner", "By", "owner", "secondary", wide=True),
    ListColumn("created", "Created", "created", "secondary"),
    ListColumn("closed", "Closed", "closed", "secondary"),
)
DEFAULT_QUEUE_COLUMNS = ("status", "complete", "verdicts", "place", "created")
ITEM_COLUMNS = (
    ListColumn("number", "Run", kind="number"),
    ListColumn("unit", "Unit", kind="unit-cell"),
    ListColumn("status", "Status", wide=True),
    ListColumn("labels", "Labels"),
    ListColumn("check", "Label check"),
    ListColumn("verdict", "Verdict"),
    ListColumn("backbone", "Agent", kind="secondary", wide=True),
    ListColumn("best", "Best", kind="number", wide=True),
    ListColumn("people", "Reviewers"),
)
DEFAULT_ITEM_COLUMNS = ("number", "unit", "labels", "check", "verdict", "people")
"""Default columns of the lists of queues and of items."""
MAX_QUEUES = 50
"""Maximum number of open queues offered for a run, newest first."""


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """List the queues that the query selects, with their contents, progress, and whether something waits for this
    person."""
    user = access.require(request)
    found = queue_lists.queues_from(request.GET.dict(), user)
    page = Page.of(request.GET, found.rows.count(), QUEUES_PER_PAGE, *queue_lists.FILTERS, "sort", "col")
    rows = lists.with_progress(found.rows[page.start : page.end])
    contents = queue_lists.read_contents(rows, user)
    columns = choose_columns(QUEUE_COLUMNS, DEFAULT_QUEUE_COLUMNS, request.GET.getlist("col"))
    drafts = Review.objects.filter(reviewer=user, state=ReviewState.DRAFT, item__queue__closed=None, version__gt=1)
    context = {
        "found": found,
        "page": page,
        "rows": [(queue, contents[queue.pk]) for queue in rows],
        "columns": columns,
        "shown": columns.has,
        "fields": list_fields(queue_lists.FILTERS, found.values, SystemNameMasker(user)),
        "statuses": queue_lists.FILTERS["status"].choices,
        "words": describe_filter("review queues", found.values),
        "any": bool(rows) or ReviewQueue.objects.exists(),
        "mine": dict.fromkeys(queues_of(user).values_list("pk", flat=True)),
        "drafts": drafts.select_related("item__queue", "item__run").order_by("-saved")[:20],
        "may_make": (access.role_of(user) or Role.VIEWER) >= MAKES_QUEUES,
    }
    return render(request, "reviews/index.html", context)


# --- making and closing ---------------------------------------------------------------------------------------


class QueueForm(forms.Form):
    """Fields of a new queue. Its runs come from the URL."""

    name = forms.CharField(max_length=80, widget=forms.TextInput(attrs={"placeholder": "Layer 4, first pass"}))
    note = forms.CharField(
        label="What reviewers should look at",
        help_text="optional",
        max_length=actions.NOTE_CHARS,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    reviewers_per_item = forms.IntegerField(
        label="Reviews of each run", min_value=1, max_value=actions.MAX_REVIEWERS, initial=1
    )
    reviewers = forms.MultipleChoiceField(
        label="Who reviews",
        help_text="none ticked: every reviewer may",
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    blind = forms.BooleanField(
        label="Blind",
        help_text="reviewers see other reviews, and names of synthetic neurons, only after they submit their own",
        required=False,
        initial=True,
    )
    only_ended = forms.BooleanField(label="Leave out runs that have not ended", required=False, initial=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        reviewers = cast("forms.MultipleChoiceField", self.fields["reviewers"])
        reviewers.choices = [(str(user.pk), person(user)) for user in lists.reviewers()]


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Show or handle the form of a new queue. The query selects its runs, as on the Runs page; only admins can add
    runs of others."""
    user = access.require(request, MAKES_QUEUES)
    # From the address even for a POST: the form holds no filters.
    query = QueryDict(request.META.get("QUERY_STRING", "")[: actions.QUERY_CHARS])
    found = run_lists.runs_from(query.dict(), user)
    sent = request.method == "POST"
    form = QueueForm(request.POST) if sent else QueueForm(initial={"name": _propose_name(found)})
    theirs = actions.list_own_runs(found.runs, user)
    if sent and form.is_valid():
        given = form.cleaned_data
        runs = actions.list_ended_runs(theirs) if given.pop("only_ended") else theirs
        reviewers = list(lists.reviewers().filter(pk__in=given.pop("reviewers")))
        queue = ReviewQueue(**given, filters=query.urlencode())
        try:
            return redirect(actions.make_queue(Actor.behind(request, user), runs, queue, reviewers))
        except InvalidInput as error:
            form.add_error(error.field or None, str(error))
    counts = {"all": theirs.count(), "ended": actions.list_ended_runs(theirs).count()}
    counts["others"] = found.runs.count() - counts["all"]
    context = {"form": form, "counts": counts, "found": found, "query": query.urlencode()}
    return render(request, "reviews/new.html", context, status=422 if sent else 200)


def _propose_name(found: run_lists.Filtered) -> str:
    """Propose a name from the filters. It does not name a system that reviewers must not know."""
    telling = found.runs.filter(system_kind=registry.BLINDED_KIND).exists()
    left_out = {"run", "model", "layer", "unit"} if telling else {"run"}
    return ", ".join(value for name, value in found.values.items() if name not in left_out)[:80]


@require_http_methods(["GET", "HEAD", "POST"])
def put_up(request: HttpRequest, pk: int) -> HttpResponse:
    """Choose an open queue for a run and add the run to it."""
    actor = Actor.of(request, MAKES_QUEUES)
    run = access.get_run(request, pk)
    if not actions.may_put_up(run, actor.person, actor.role or Role.VIEWER):
        raise PermissionDenied("Runs that have ended are added to review: your own, by an admin any.")
    if request.method != "POST":
        there = run.review_items.values("queue")
        offered = ReviewQueue.objects.filter(closed=None).exclude(pk__in=there).select_related("owner")[:MAX_QUEUES]
        return render(request, "reviews/put_up.html", {"run": run, "offered": list(offered)})
    try:
        item = actions.add_run(actor, run, parse_key(request.POST.get("queue")))
    except ActionRefused as error:
        messages.warning(request, str(error))
        return redirect("run-review", pk)
    messages.success(
        request, f"Run {run.pk} is to be reviewed in “{item.queue.name}”. You will be told of its verdict."
    )
    return redirect(run)


@require_POST
def close(request: HttpRequest, pk: int) -> HttpResponse:
    """Close the queue. All team members can then read its reviews."""
    actor = Actor.of(request, MAKES_QUEUES)
    row = get_object_or_404(ReviewQueue, pk=pk)
    if actions.close_queue(actor, row):
        messages.success(request, "The queue is closed. Its reviews are open to the whole team.")
    return redirect(row)


# --- one queue ------------------------------------------------------------------------------------------------


@require_safe
def queue(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one queue with the items that the query selects. A live update gets the table alone."""
    user = access.require(request)
    # `with_progress` gives a list, so `get_object_or_404` cannot be used.
    row = next(iter(lists.with_progress(lists.with_items(ReviewQueue.objects.filter(pk=pk)))), None)
    if row is None:
        raise Http404("There is no such queue.")
    found = lists.items_from(row, request.GET.dict(), user)
    page = Page.of(request.GET, found.rows.count(), PER_PAGE)
    rows = lists.item_rows(list(found.rows[page.start : page.end]), user)
    lists.record_disclosure(rows, user)
    columns = choose_columns(ITEM_COLUMNS, DEFAULT_ITEM_COLUMNS, request.GET.getlist("col"))
    # This person's drafts whose place went to another: they can be sent as additional reviews
    displaced = Review.objects.filter(item__queue=row, reviewer=user, state=ReviewState.DRAFT, slot=None)
    context = {
        "queue": row,
        "breadcrumbs": [("Review", reverse("review")), (row.name, row.get_absolute_url())],
        "found": found,
        "page": page,
        "rows": rows,
        "columns": columns,
        "shown": columns.has,
        "fields": lists.list_filters(row, found, user),
        "statuses": lists.ITEM_FILTERS["show"].choices,
        "words": describe_filter("items", found.values),
        "export_query": lists.export_query(row, found),
        "pictures": find_pictures(each.item.run_id for each in rows),
        "verdicts": verdicts.find_verdicts([each.item.run for each in rows], user),
        "named": row.reviewers.all(),
        "chosen_by": "" if SystemNameMasker(user).hide_any(row) else row.filters,
        "may_review": queues_of(user).filter(pk=pk).exists(),
        "may_close": actions.may_close(user, row),
        "drafts": displaced.select_related("item").order_by("item__position"),
        "undoable": actions.find_undoable(row, user),
        "address": request.get_full_path(),
    }
    # The list reloads itself when others change the queue
    alone = request.htmx.trigger == "list"
    return render(request, "reviews/table.html" if alone else "reviews/queue.html", context)
