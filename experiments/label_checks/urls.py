"""URLs of label checks."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.label_checks import pages

urlpatterns: list[URLPattern] = [
    path("labels/<int:label>/check/", pages.new, name="label-check-new"),
    path("runs/<int:run>/check/new/", pages.new, name="run-check-new"),
    path("checks/<int:pk>/", pages.check, name="label-check"),
    path("checks/<int:pk>/images/<int:question>/", pages.image, name="check-image"),
    path("runs/<int:pk>/check/", pages.mark_of_run, name="run-check"),
]
