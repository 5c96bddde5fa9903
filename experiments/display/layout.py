"""Provide the frame of every page: the menu, the user and their role, the numbers of active and waiting runs, and the
sandbox warning. Users without a role and anonymous visitors get an empty frame."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.db.models import Count
from django.http import HttpRequest
from django.urls import NoReverseMatch, Resolver404, ResolverMatch, resolve, reverse
from django.utils.encoding import escape_uri_path
from django.utils.functional import SimpleLazyObject

from experiments.core import blindness, worker_status
from experiments.core.access import role_in
from experiments.core.system_names import SystemNameMasker
from experiments.models import Role, Run
from workers.record.statuses import ACTIVE, Status


@dataclass(frozen=True)
class MenuEntry:
    """A menu entry: the name of its URL, and the key that opens it after g.

    Pages under the addresses in `also` belong to it too. The palette finds it by its label and by `words`, and
    offers it to people with at least the role `least`.
    """

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
        """True if a page belongs here; only the Overview is a single page."""
        if self.name == "overview":
            return path == self.url
        return path.startswith((self.url, *(settings.PREFIX + each for each in self.also)))


MENU = (
    MenuEntry("overview", "Overview", "o"),
    MenuEntry("runs", "Runs", "r"),
    MenuEntry("experiments", "Experiments", "e", ("/images/",)),
    MenuEntry("units", "Units", "u", ("/circuits/",)),
    MenuEntry("sweeps", "Sweeps", "p", words="one question of many units, a layer, a network"),
    MenuEntry("compare", "Compare", "c", words="runs side by side"),
    MenuEntry("evaluations", "Evaluations", "v", ("/checks/",), words="how right labels are"),
    MenuEntry("review", "Review", "w", ("/pairwise/",)),
    MenuEntry("settings", "Settings", "s"),
)
ELSEWHERE = (
    MenuEntry("search", "Search", ""),
    MenuEntry(
        "units-search",
        "Find units by what they respond to",
        "",
        words="which units that respond to anywhere, labels, meaning",
    ),
    MenuEntry("units-beside", "Two layers side by side", "", words="compare models units"),
    MenuEntry("circuits", "Circuits", "", words="sets of units latents"),
    MenuEntry("circuit-searches", "Find a circuit", "", words="which units a class rests on"),
    MenuEntry("circuits-compare", "Compare circuits", "", words="two circuits side by side"),
    MenuEntry("glossary", "Glossary", "", words="words, what they mean, help"),
    MenuEntry("notifications", "Notifications", ""),
    MenuEntry("presets", "Presets", "", words="new run settings", least=Role.RESEARCHER),
    MenuEntry("studies", "Studies", "", words="publish units runs collection paper"),
    MenuEntry("exports", "Exports", ""),
    MenuEntry("imports", "Imports", "", least=Role.RESEARCHER),
    MenuEntry("review-new", "New queue for review", "", least=Role.RESEARCHER),
    MenuEntry("sweep-new", "New sweep", "", words="ask about many units", least=Role.RESEARCHER),
    MenuEntry("evaluation-new", "New evaluation", "", words="measure labels", least=Role.RESEARCHER),
    MenuEntry("evaluation-scores", "Scores of labels", "", words="evaluations distribution agents layers models"),
    MenuEntry("evaluation-claims", "What AIM claims", "", words="evaluations paper tables"),
    MenuEntry("evaluations-compare", "Compare two evaluations", "", words="measure labels"),
    MenuEntry("pairwise", "Pairwise trials", "", words="votes, labels side by side"),
    MenuEntry("pairwise-new", "New trial", "", words="pairwise trial of labels", least=Role.ADMIN),
    MenuEntry("settings-models", "Models", "", words="settings"),
    MenuEntry("settings-datasets", "Datasets", "", words="settings datasets"),
    MenuEntry("settings-autoencoders", "Auto-encoders", "", words="settings sparse autoencoders SAE latents"),
    MenuEntry("settings-workers", "Workers", "", words="settings"),
    MenuEntry("settings-shares", "Share links", "", words="settings shares", least=Role.ADMIN),
    MenuEntry("settings-audit", "Audit", "", words="settings history", least=Role.ADMIN),
    MenuEntry("settings-people", "People", "", words="settings invite roles", least=Role.ADMIN),
    MenuEntry("settings-webhooks", "Webhooks", "", words="settings notify Slack deliveries", least=Role.ADMIN),
    MenuEntry("settings-tokens", "Tokens for the API", "", words="settings"),
    MenuEntry("settings-you", "Account", "", words="settings you your password sessions"),
    MenuEntry("api:docs", "API reference", "", words="docs documentation"),
    MenuEntry("api:notebook", "Notebook for Python", "", words="api client script jupyter"),
)
"""Pages that the palette offers besides the menu's."""
COUNTED = 99
"""Maximum count of items to review."""
MAX_PHONE_ENTRIES = 2
"""Entries that the bottom bar of a small screen has room for; the others unfold."""


@cache
def address(name: str) -> str:
    """Return the URL of a page; "" if there is none."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return lazy values, computed only if a template uses them; `names` are the names of systems for this person."""
    names = SystemNameMasker(getattr(request, "user", None))
    # Lazy: many answers are fragments without a frame, and need none of its queries.
    return {"frame": SimpleLazyObject(lambda: _read_frame(request)), "names": names}


def _read_frame(request: HttpRequest) -> dict[str, Any]:
    """Return the frame; `role` is None for users without a role."""
    # A visitor without a role must not learn how much there is.
    role = role_in(request)
    if role is None:
        return {"role": None, "may_ask": False, "places": [], "counts": {}}
    places = [place for place in MENU if place.url]
    return {
        "role": role.label,
        "may_ask": role >= Role.RESEARCHER,
        "places": places[:MAX_PHONE_ENTRIES],
        "more": places[MAX_PHONE_ENTRIES:],
        "elsewhere": [place for place in ELSEWHERE if place.url and role >= place.least],
        "here": next((place.name for place in places if place.holds(request.path)), ""),
        "counts": counts(request.user),
        "warning": worker_status.warn_of_sandbox(),
    }


def counts(user: Any) -> Mapping[str, str]:
    """Return what is shown beside menu entries: place -> a few words, "" for nothing."""
    # Without the default order, which would become part of the grouping.
    rows = Run.objects.filter(status__in=[*ACTIVE, Status.WAITING]).order_by()
    found = dict(rows.values_list("status").annotate(Count("pk")))
    live, waiting = sum(found.get(status, 0) for status in ACTIVE), found.get(Status.WAITING, 0)
    # Not counted beyond the maximum: the query runs for every page.
    count = blindness.waiting(user)[: COUNTED + 1].count()
    return {
        "overview": f"{waiting} wait{'s' * (waiting == 1)}" if waiting else "",
        "runs": f"{live} live" if live else "",
        "review": (f"{COUNTED}+" if count > COUNTED else str(count or "")),
    }


# --- breadcrumbs -----------------------------------------------------------------------------------

CRUMBS = {
    "overview": "Overview",
    "query": "New run",
    "presets": "Presets",
    "root": "API",
    "run": "Run {pk}",
    "run-shares": "Share links",
    "study": "Study {pk}",
    "study-shares": "Share links",
    "run-fork": "Fork",
    "run-reply": "Your round",
    "run-hand-over": "Hand over",
    "run-limits": "Limits",
    "run-note": "Note",
    "settings-datasets": "Datasets",
    "settings-autoencoders": "Auto-encoders",
    "settings-autoencoder": "Report",
    "run-review": "Add to review",
    "settings-webhook": "Webhook {pk}",
    "experiment": "Experiment {n}",
    "image-page": "Image {key:.8}",
    "unit": "Unit {number}",
}
"""Name of a URL -> text of its crumb; others show the last part of the address."""
DEEPEST = 12
"""Maximum parts of an address that are looked up."""


def breadcrumbs(path: str) -> list[tuple[str, str]]:
    """Return the pages on the way to `path`, including itself, as (words, address). The start page needs none.

    `path` is the part after MAIA_PREFIX.
    """
    parts = path.strip("/").split("/")[:DEEPEST]
    ways = ["/"]  # every prefix of the path that may be a page's address
    ways += [f"/{'/'.join(parts[:end])}/" for end in range(1, len(parts) + (path.endswith("/") and path != "/"))]
    found = []
    for way in ways if path.endswith("/") else [*ways, path]:
        with suppress(Resolver404):
            found.append((_format_crumb(resolve(way), way), escape_uri_path(settings.PREFIX + way)))
    return found if len(found) > 1 else []


def _format_crumb(match: ResolverMatch, path: str) -> str:
    """Return the text of a crumb."""
    if template := CRUMBS.get(match.url_name or ""):
        with suppress(KeyError, ValueError):  # the page names its parameters differently
            return template.format(**match.kwargs)
    last = path.rstrip("/").rpartition("/")[2]
    return last if match.kwargs else last.replace("-", " ").capitalize()
