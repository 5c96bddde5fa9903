"""What the frame around every page shows: the places there are, who is here and in which role, how many runs are alive
or wait, and what all should know of the sandbox.

A context processor; strangers and anonymous visitors get an empty frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db.models import Count
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject

from experiments.core import review_rights, sandbox_report
from experiments.core.access import role_of
from experiments.core.system_names import Names
from experiments.models import Run
from experiments.models.member import Role
from workers.record.statuses import ACTIVE, Status


@dataclass(frozen=True)
class Place:
    """An entry of the rail: the name of its address, and the key that leads there after g. It is also the place of
    the pages under the addresses in `also`. The palette finds it by its label and by `words`, and offers it to those
    who have at least the role `least`."""

    name: str
    label: str
    key: str
    also: tuple[str, ...] = ()
    words: str = ""
    least: Role = Role.VIEWER

    @property
    def url(self) -> str:
        return address(self.name)

    def holds(self, path: str) -> bool:
        """Whether a page belongs here; only the Overview is a single page."""
        return path == self.url if self.url == "/" else path.startswith((self.url, *self.also))


PLACES = (
    Place("overview", "Overview", "o"),
    Place("runs", "Runs", "r"),
    Place("experiments", "Experiments", "e", ("/images/",)),
    Place("units", "Units", "u"),
    Place("compare", "Compare", "c", words="runs side by side"),
    Place("evaluations", "Evaluations", "v"),
    Place("review", "Review", "w", ("/pairwise/",)),
    Place("settings", "Settings", "s"),
)
ELSEWHERE = (
    Place("search", "Search", ""),
    Place("notifications", "Notifications", ""),
    Place("exports", "Exports", ""),
    Place("imports", "Imports", "", least=Role.RESEARCHER),
    Place("review-new", "New queue for review", "", least=Role.RESEARCHER),
    Place("pairwise", "Pairwise trials", "", words="votes, labels side by side"),
    Place("pairwise-new", "New trial", "", words="pairwise trial of labels", least=Role.ADMIN),
    Place("settings-models", "Models", "", words="settings"),
    Place("settings-datasets", "Datasets", "", words="settings datasets"),
    Place("settings-workers", "Workers", "", words="settings"),
    Place("settings-shares", "Shares", "", words="settings links", least=Role.ADMIN),
    Place("settings-audit", "Audit", "", words="settings history", least=Role.ADMIN),
    Place("settings-people", "People", "", words="settings invite roles", least=Role.ADMIN),
    Place("settings-tokens", "Tokens for the API", "", words="settings"),
    Place("settings-you", "Your account", "", words="settings you password sessions"),
    Place("api:docs", "API reference", "", words="docs documentation"),
)
"""Pages that the palette offers beside those of the rail."""
COUNTED = 99
"""Items to review that are counted."""
SHOWN_ON_A_PHONE = 2
"""Entries that the bar at the foot of a small screen has room for; the others unfold."""


@cache
def address(name: str) -> str:
    """Where a page is; "" while there is none."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


def frame(request: HttpRequest) -> dict[str, Any]:
    """Looked up only by templates that ask; `names` is what systems are called before this person."""
    names = Names(getattr(request, "user", None))
    return {"frame": SimpleLazyObject(lambda: look(request)), "names": names}


def look(request: HttpRequest) -> dict[str, Any]:
    """`role` is None for strangers."""
    role = role_of(getattr(request, "user", None)) if hasattr(request, "user") else None
    if role is None:
        return {"role": None, "may_ask": False, "places": [], "counts": {}}
    places = [place for place in PLACES if place.url]
    return {
        "role": role.label,
        "may_ask": role >= Role.RESEARCHER,
        "places": places[:SHOWN_ON_A_PHONE],
        "more": places[SHOWN_ON_A_PHONE:],
        "elsewhere": [place for place in ELSEWHERE if place.url and role >= place.least],
        "here": next((place.name for place in places if place.holds(request.path)), ""),
        "counts": counts(request.user),
        "warning": sandbox_report.banner(),
    }


def counts(user: Any) -> Mapping[str, str]:
    """What stands beside the names of the rail: place -> a few words, "" for nothing."""
    asked = [*ACTIVE, Status.WAITING]
    rows = Run.objects.filter(status__in=asked).order_by().values_list("status").annotate(Count("pk"))
    found = dict(rows)
    live, waiting = sum(found.get(status, 0) for status in ACTIVE), found.get(Status.WAITING, 0)
    return {
        "overview": f"{waiting} wait{'s' * (waiting == 1)}" if waiting else "",
        "runs": f"{live} live" if live else "",
        "review": to_review(user),
    }


def to_review(user: Any) -> str:
    """How many items wait for this person's review; "" for none. Beyond some the number does not matter."""
    count = review_rights.waiting(user)[: COUNTED + 1].count()
    return f"{COUNTED}+" if count > COUNTED else str(count or "")
