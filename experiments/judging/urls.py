"""URLs of judging."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.judging import pages

urlpatterns: list[URLPattern] = [
    path("judging/<str:kind>/<int:pk>/", pages.judge, name="judging"),
    path("judging/<str:kind>/<int:pk>/answer/", pages.answer, name="judging-answer"),
    path("judging/<str:kind>/<int:pk>/undo/", pages.undo, name="judging-undo"),
    path("judging/<str:kind>/<int:pk>/close/", pages.close, name="judging-close"),
    path("judging/<str:kind>/<int:pk>/answers.csv", pages.file, name="judging-answers"),
]
