"""Addresses of runs: asking, presets, lists, the run's page, steering, forks, rounds of people, comparing, views."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.runs import bulk, pages
from experiments.runs.asking import pages as asking
from experiments.runs.comparing import pages as comparing
from experiments.runs.forks import pages as forks
from experiments.runs.human import pages as human
from experiments.runs.page import pages as page
from experiments.runs.presets import pages as presets
from experiments.runs.saved_views import pages as saved_views
from experiments.runs.steering import actions
from experiments.runs.steering import pages as steering

urlpatterns: list[URLPattern] = [
    path("runs/", pages.index, name="runs"),
    path("runs/act/", bulk.act, name="runs-bulk"),
    path("runs/views/", saved_views.save, name="view-save"),
    path("runs/views/<int:pk>/", saved_views.rename, name="view-rename"),
    path("runs/views/<int:pk>/delete/", saved_views.delete, name="view-delete"),
    path("runs/<int:pk>/", page.page, name="run"),
    path("runs/<int:pk>/events/", page.events, name="run-events"),
    path("runs/<int:pk>/events.jsonl", page.events_file, name="run-events-file"),
    # One view for three actions, which differ in the function alone.
    path("runs/<int:pk>/pause/", steering.act, {"do": actions.pause}, name="run-pause"),
    path("runs/<int:pk>/try-again/", steering.act, {"do": actions.resume}, name="run-try-again"),
    path("runs/<int:pk>/stop/", steering.act, {"do": actions.stop}, name="run-stop"),
    path("runs/<int:pk>/note/", steering.note, name="run-note"),
    path("runs/<int:pk>/limits/", steering.change_limits, name="run-limits"),
    path("runs/<int:pk>/fork/", forks.page, name="run-fork"),
    path("runs/<int:pk>/reply/", human.page, name="run-reply"),
    path("runs/<int:pk>/reply/draft/", human.draft, name="run-reply-draft"),
    path("runs/<int:pk>/reply/stop/", human.stop, name="run-program-stop"),
    path("runs/<int:pk>/take-over/", human.take_over, name="run-take-over"),
    path("runs/<int:pk>/hand-over/", human.hand_over, name="run-hand-over"),
    path("query/", asking.page, name="query"),
    path("query/unit/", asking.unit, name="query-unit"),
    path("query/command/", asking.command, name="query-command"),
    path("query/presets/", presets.page, name="presets"),
    path("query/presets/<int:pk>/", presets.change, name="preset-change"),
    path("query/presets/<int:pk>/delete/", presets.delete, name="preset-delete"),
    path("compare/", comparing.page, name="compare"),
]
