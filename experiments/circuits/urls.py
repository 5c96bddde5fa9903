"""Addresses of circuits."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.circuits import graph_pages, pages, search_pages, study_pages

urlpatterns: list[URLPattern] = [
    path("circuits/", pages.index, name="circuits"),
    path("circuits/add/", pages.add, name="circuit-add"),
    path("circuits/find/", search_pages.index, name="circuit-searches"),
    path("circuits/find/ask/", search_pages.ask, name="circuit-search-ask"),
    path("circuits/find/<int:pk>/", search_pages.search, name="circuit-search"),
    path("circuits/find/<int:pk>/keep/", search_pages.keep, name="circuit-search-keep"),
    path("circuits/import/", study_pages.bring, name="circuit-import"),
    path("circuits/compare/", graph_pages.compare_circuits, name="circuits-compare"),
    path("circuits/studied/<unit_name:name>/<unit_number:number>/", study_pages.studied, name="circuit-studied"),
    path("circuits/<int:pk>/", pages.circuit, name="circuit"),
    path("circuits/<int:pk>/circuit.json", pages.export, name="circuit-file"),
    path("circuits/<int:pk>/exemplars/", study_pages.exemplars, name="circuit-exemplars"),
    path("circuits/<int:pk>/graph/", graph_pages.ask_for_graph, name="circuit-graph"),
    path("circuits/<int:pk>/rename/", pages.rename, name="circuit-rename"),
    path("circuits/<int:pk>/remove/", pages.remove, name="circuit-remove"),
    path("circuits/<int:pk>/delete/", pages.delete, name="circuit-delete"),
]
