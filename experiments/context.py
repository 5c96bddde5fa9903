"""What the frame around every page shows: who is here, in which role, and how many runs are alive, and what all should
know of the sandbox.

A context processor; strangers and anonymous visitors get an empty frame.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from experiments.access import role_of
from experiments.models import Run
from experiments.models.member import Role
from experiments.models.run import ACTIVE
from workers.jobs import jail


def frame(request: HttpRequest) -> dict[str, Any]:
    """Looked up only by templates that ask."""
    return {"frame": SimpleLazyObject(lambda: look(request))}


def look(request: HttpRequest) -> dict[str, Any]:
    """`role` is None for strangers; `live` counts the runs that are queued or running."""
    role = role_of(getattr(request, "user", None)) if hasattr(request, "user") else None
    if role is None:
        return {"role": None, "may_ask": False, "live": 0}
    return {
        "role": role.label,
        "may_ask": role >= Role.RESEARCHER,
        "live": Run.objects.filter(status__in=ACTIVE).count(),
        "warning": jail.banner(),
    }
