"""Addresses of studies."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.studies import pages

urlpatterns: list[URLPattern] = [
    path("studies/", pages.index, name="studies"),
    path("studies/add/", pages.add, name="study-add"),
    path("studies/<int:pk>/", pages.study, name="study"),
    path("studies/<int:pk>/edit/", pages.edit, name="study-edit"),
    path("studies/<int:pk>/delete/", pages.delete, name="study-delete"),
]
