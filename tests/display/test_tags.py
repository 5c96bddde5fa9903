"""Tags that write what many pages share."""

from __future__ import annotations

from django.http import HttpRequest
from django.template import Context, Template
from django.test import RequestFactory


def draw(source: str, request: HttpRequest) -> str:
    return Template("{% load maia %}" + source).render(Context({"request": request, "value": "<b>"}))


def test_an_element_refreshes_from_its_page_or_an_address(rf: RequestFactory) -> None:
    request = rf.get("/sweeps/", {"page": "2", "q": '"'})
    own = draw('{% poll "5s" select="#list" %}', request)
    assert 'hx-get="/sweeps/?page=2&amp;q=%22"' in own
    assert 'hx-trigger="every 5s" hx-select="#list"' in own
    given = draw('{% poll "1s" "/exports/" %}', request)
    assert 'hx-get="/exports/"' in given
    assert "hx-select" not in given


def test_a_fact_is_escaped(rf: RequestFactory) -> None:
    drawn = draw('{% fact "Seed" value mono=True %}', rf.get("/"))
    assert "<dt>Seed</dt>" in drawn
    assert '<dd class="mono">&lt;b&gt;</dd>' in drawn
