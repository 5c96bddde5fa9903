"""Provide template tags that show runs on the pages of other rooms."""

from __future__ import annotations

from typing import Any

from django import template

from experiments.core import access
from experiments.core.sweep_totals import explain_wait
from experiments.models import Role
from experiments.runs.forks.lineage import list_related
from experiments.runs.saved_views.actions import clean_query, list_views
from experiments.runs.saved_views.form import draw_view_form
from workers.record import limits
from workers.record.decoding import encode
from workers.record.events import LimitsChanged

register = template.Library()


@register.filter
def limits_changed(event: LimitsChanged) -> list[tuple[str, str, str]]:
    """Return the changes of a "limits" event: name, value before, value now."""
    return limits.changes(encode(event.before) if event.before else {}, encode(event.limits))


@register.inclusion_tag("runs/views.html", takes_context=True)
def saved_views(context: template.Context, of: str, name: str = "") -> dict[str, Any]:
    """Show the saved views of a list, and the form to save another, with this name proposed."""
    request = context["request"]
    query = clean_query(request.GET.urlencode())
    may_share = (access.role_in(request) or Role.VIEWER) >= Role.RESEARCHER
    views = list_views(request.user, of)
    return {
        "list": of,
        "views": [(view, draw_view_form(view.name, view.shared, may_share, f"id_{view.pk}_%s")) for view in views],
        "query": query,
        # An unfiltered list has no name to propose.
        "form": draw_view_form(name[:60] if query else "", False, may_share, "id_view_%s"),
        "user": request.user,
        "csrf_token": context.get("csrf_token"),
    }


register.simple_tag(list_related, name="related_runs")
register.simple_tag(explain_wait)
