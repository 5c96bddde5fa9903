"""URLs of the search."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.search import pages

urlpatterns: list[URLPattern] = [
    path("search/", pages.page, name="search"),
    path("jump/", pages.jump, name="jump"),
    path("glossary/", pages.glossary, name="glossary"),
]
