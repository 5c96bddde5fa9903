"""URLs of evaluations."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.evaluations import claim_pages, pages, score_pages

urlpatterns: list[URLPattern] = [
    path("evaluations/", pages.index, name="evaluations"),
    path("evaluations/new/", pages.new, name="evaluation-new"),
    path("evaluations/compare/", pages.compare, name="evaluations-compare"),
    path("evaluations/claims/", claim_pages.page, name="evaluation-claims"),
    path("evaluations/scores/", score_pages.page, name="evaluation-scores"),
    path("evaluations/source/", pages.check_source, name="evaluation-of-source"),
    path("evaluations/<int:pk>/", pages.evaluation, name="evaluation"),
    path("evaluations/<int:pk>/figures.<str:end>", pages.file, name="evaluation-file"),
    path("evaluations/<int:pk>/stop/", pages.stop, name="evaluation-stop"),
    path("evaluations/<int:pk>/resume/", pages.resume, name="evaluation-resume"),
    path("evaluations/<int:pk>/score/", pages.score_again, name="evaluation-score-again"),
    path("evaluations/<int:pk>/repair/", pages.repair, name="evaluation-repair"),
    path("evaluations/<int:pk>/people/", pages.ask_people, name="evaluation-people"),
    path("evaluations/<int:pk>/delete/", pages.delete, name="evaluation-delete"),
    path("pairwise/evaluation/<int:pk>/", pages.compare_labels, name="pairwise-of-evaluation"),
]
