"""Addresses of label checks."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.label_checks import judging_pages, pages

urlpatterns: list[URLPattern] = [
    path("labels/<int:label>/check/", pages.new, name="label-check-new"),
    path("runs/<int:run>/check/new/", pages.new, name="run-check-new"),
    path("checks/<int:pk>/", pages.check, name="label-check"),
    path("checks/<int:pk>/judge/", judging_pages.judge, name="check-judge"),
    path("checks/<int:pk>/images/<int:question>/", judging_pages.image, name="check-image"),
    path("checks/<int:pk>/answer/", judging_pages.answer, name="check-answer"),
    path("checks/<int:pk>/undo/", judging_pages.undo, name="check-undo"),
    path("checks/<int:pk>/finish/", judging_pages.finish, name="check-finish"),
    path("checks/<int:pk>/answers.csv", judging_pages.file, name="check-answers"),
    path("runs/<int:pk>/check/", pages.mark_of_run, name="run-check"),
]
