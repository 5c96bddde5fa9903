"""Verdicts, as pages draw them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template

from experiments.models import Run
from experiments.review.verdicts import Verdict

register = template.Library()


@register.inclusion_tag("review/verdict.html")
def verdict(verdicts: Mapping[int, Verdict] | str, run: Run) -> dict[str, Any]:
    """What the viewer may see of the verdict on a run; nothing where there is none. `verdicts` is `verdicts.of`."""
    return {"verdict": verdicts.get(run.pk) if isinstance(verdicts, Mapping) else None}
