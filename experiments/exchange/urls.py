"""URLs of exports and imports."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.exchange import pages

urlpatterns: list[URLPattern] = [
    path("exports/", pages.exports, name="exports"),
    path("exports/make/", pages.make_export, name="exports-make"),
    path("exports/<int:pk>/file/", pages.export_file, name="exports-file"),
    path("exports/<int:pk>/delete/", pages.delete_export, name="exports-delete"),
    path("imports/", pages.imports, name="imports"),
    path("imports/bring/", pages.bring, name="imports-bring"),
]
