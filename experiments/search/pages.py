"""Pages of the search: its results, and the options of Ctrl+K."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.params import parse_number
from experiments.core.search_index import words
from experiments.display import verdicts
from experiments.display.glossary import SECTIONS
from experiments.display.run_pictures import find_pictures
from experiments.models import Layer, Role, SearchText, TextKind, VisionModelRow
from experiments.search import finding, jumping, results

MAX_NAME = 200


@require_safe
def page(request: HtmxRequest) -> HttpResponse:
    """Show the page; htmx gets the results alone, or the next ones."""
    user = access.require(request)
    typed = request.GET.get("q", "")
    asked = words.parse_words(typed)
    scope, notes = _scope_of(request.GET)
    context: dict[str, Any] = {
        "typed": typed,
        "asked": asked,
        "scope": scope,
        "notes": notes,
        "narrowed": scope != finding.SearchScope(),
    }
    status, target = 400 if asked.refused else 200, request.htmx.target or ""
    if not asked.problem:
        try:
            cursor = request.GET.get("after", "")
            found = finding.find(asked.terms, scope, cursor, viewer=user)
            groups = results.group_hits(found, asked.terms)
            seen = verdicts.find_verdicts([group.run for group in groups if group.run], user)
            pictures = find_pictures(group.run.pk for group in groups if group.run)
            context |= {
                "page": found,
                "groups": groups,
                "first": not cursor,
                "verdicts": seen,
                "run_pictures": pictures,
            }
            if target != "found-next":
                kinds = finding.count_kinds(found, asked.terms, scope, user)
                context["facets"] = _list_facets(kinds, scope.kind)
                context["everything"] = sum(kinds.values()) if kinds is not None else None
        except finding.WrongCursor as wrong:
            context["wrong"], status = str(wrong), 400
    context["layers"] = Layer.objects.filter(model__name=scope.model).values_list("name", flat=True)
    if target in TEMPLATES and status == 200:
        context["alone"] = target == "found"
        response = render(request, TEMPLATES[target], context)
        if target == "found":
            # During input, the address is that of what the page shows, without empty fields.
            given = {name: value for name, value in request.GET.items() if value}
            response["HX-Replace-Url"] = f"{request.path}?{urlencode(given)}" if given else request.path
        return response
    context["models"] = VisionModelRow.objects.values_list("name", flat=True)
    context["nothing_yet"] = not asked.terms and not SearchText.objects.exists()
    return render(request, "search/index.html", context, status=status)


def _list_facets(kinds: Mapping[str, int] | None, chosen: str) -> list[tuple[str, str, int | None]]:
    """Return the kinds that have hits: kind, words and number; if they are too many to count, all kinds without a
    number."""
    if kinds is None:
        return [(value, str(label), None) for value, label in TextKind.choices]
    some = [(value, str(label), kinds.get(value, 0)) for value, label in TextKind.choices]
    return [(value, label, count) for value, label, count in some if count or value == chosen]


TEMPLATES = {"found": "search/found.html", "found-next": "search/more.html"}
"""Id of the element that htmx fills -> its template."""


def _scope_of(given: Mapping[str, str]) -> tuple[finding.SearchScope, list[str]]:
    """Return where to search, and messages on invalid parts, which are left out."""
    notes = []
    fields: dict[str, Any] = {name: given.get(name, "").strip()[:MAX_NAME] for name in ("kind", "model", "layer")}
    if fields["kind"] and fields["kind"] not in TextKind.values:
        notes.append(f"There is no kind “{fields['kind']}”: all kinds are searched.")
        fields["kind"] = ""
    for name in ("unit", "run"):
        typed = given.get(name, "").strip()
        if (number := parse_number(typed)) is not None:
            fields[name] = number
        elif typed:
            notes.append(f"“{typed[:40]}” is not the number of a {name}: every {name} is searched.")
    return finding.SearchScope(**fields), notes


@require_safe
def jump(request: HttpRequest) -> HttpResponse:
    """Return options for the palette, a few of each kind."""
    user = access.require(request)
    role = access.role_in(request) or Role.VIEWER
    typed = request.GET.get("q", "")
    found = jumping.sections(typed, user, role)
    return render(request, "search/jump.html", {"typed": typed, "sections": found, "asked": words.parse_words(typed)})


@require_safe
def glossary(request: HttpRequest) -> HttpResponse:
    """Show the glossary; the list behind "?" loads its entries from here."""
    access.require(request)
    return render(request, "search/glossary.html", {"sections": SECTIONS})
