"""Addresses of exports and imports."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.exchange import export_pages, import_pages

urlpatterns: list[URLPattern] = [
    path("exports/", export_pages.page, name="exports"),
    path("exports/make/", export_pages.make, name="exports-make"),
    path("exports/<int:pk>/file/", export_pages.file, name="exports-file"),
    path("exports/<int:pk>/delete/", export_pages.delete, name="exports-delete"),
    path("imports/", import_pages.page, name="imports"),
    path("imports/bring/", import_pages.bring, name="imports-bring"),
]
