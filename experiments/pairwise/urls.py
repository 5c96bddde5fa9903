"""Addresses of pairwise trials."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.pairwise import judging_pages, pages

urlpatterns: list[URLPattern] = [
    path("choices/", pages.index, name="choices"),
    path("choices/new/", pages.new, name="choices-new"),
    path("choices/<int:pk>/", pages.contest, name="choices-contest"),
    path("choices/<int:pk>/judge/", judging_pages.page, name="choices-judge"),
    path("choices/<int:pk>/answer/", judging_pages.answer, name="choices-answer"),
    path("choices/<int:pk>/undo/", judging_pages.undo, name="choices-undo"),
    path("choices/<int:pk>/close/", pages.close, name="choices-close"),
    path("choices/<int:pk>/choices.csv", pages.file, name="choices-file"),
    path("choices/<int:pk>/ask/", pages.ask, name="choices-ask"),
    path("choices/<int:pk>/judges/<int:judge>/stop/", pages.stop, name="choices-stop"),
]
