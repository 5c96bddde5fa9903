"""Addresses of sweeps."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.sweeps import pages

urlpatterns: list[URLPattern] = [
    path("sweeps/", pages.index, name="sweeps"),
    path("sweeps/new/", pages.new, name="sweep-new"),
    path("sweeps/<int:pk>/", pages.sweep, name="sweep"),
    path("sweeps/<int:pk>/runs.csv", pages.file, name="sweep-file"),
    path("sweeps/<int:pk>/pause/", pages.pause, name="sweep-pause"),
    path("sweeps/<int:pk>/resume/", pages.resume, name="sweep-resume"),
    path("sweeps/<int:pk>/stop/", pages.stop, name="sweep-stop"),
    path("sweeps/<int:pk>/retry/", pages.retry, name="sweep-retry"),
    path("sweeps/<int:pk>/change/", pages.change, name="sweep-change"),
]
