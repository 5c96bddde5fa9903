"""What templates that are not of runs show of them."""

from __future__ import annotations

from django import template

from experiments.core.sweep_totals import explain_wait
from experiments.runs.forks.lineage import list_related
from workers.record import limits
from workers.record.decoding import encode
from workers.record.events import LimitsChanged

register = template.Library()


@register.filter
def limits_changed(event: LimitsChanged) -> list[tuple[str, str, str]]:
    """Of an event "limits": name, what held before, what holds now."""
    return limits.changes(encode(event.before) if event.before else {}, encode(event.limits))


register.simple_tag(list_related, name="related_runs")
register.simple_tag(explain_wait)
