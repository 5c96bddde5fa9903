"""What templates that are not of runs show of them."""

from __future__ import annotations

from collections.abc import Sequence

from django import template

from experiments.core.system_names import Names
from experiments.models import Run
from experiments.runs.forks import lineage
from workers.record import limits
from workers.record.decoding import encode
from workers.record.events import LimitsChanged

register = template.Library()


@register.filter
def limits_changed(event: LimitsChanged) -> list[tuple[str, str, str]]:
    """Of an event "limits": name, what held before, what holds now."""
    return limits.changes(encode(event.before) if event.before else {}, encode(event.limits))


@register.simple_tag
def related_runs(run: Run, names: Names) -> Sequence[lineage.RelatedRun]:
    """The run that it comes from, and those that come from it."""
    return lineage.list_related(run, names)
