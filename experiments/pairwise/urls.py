"""URLs of pairwise trials."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.pairwise import pages

urlpatterns: list[URLPattern] = [
    path("pairwise/", pages.index, name="pairwise"),
    path("pairwise/new/", pages.new, name="pairwise-new"),
    path("pairwise/<int:pk>/", pages.trial, name="pairwise-trial"),
    path("pairwise/<int:pk>/ask/", pages.ask, name="pairwise-ask"),
    path("pairwise/<int:pk>/judges/<int:judge>/stop/", pages.stop, name="pairwise-stop"),
]
