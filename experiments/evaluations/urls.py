"""Addresses of evaluations and of checks of labels."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.evaluations import check_pages, judging_pages, pages, score_pages

urlpatterns: list[URLPattern] = [
    path("evaluations/", pages.index, name="evaluations"),
    path("evaluations/new/", pages.new, name="evaluation-new"),
    path("evaluations/compare/", pages.compare, name="evaluations-compare"),
    path("evaluations/scores/", score_pages.page, name="evaluation-scores"),
    path("evaluations/source/", check_pages.check_source, name="evaluation-of-source"),
    path("evaluations/<int:pk>/", pages.evaluation, name="evaluation"),
    path("evaluations/<int:pk>/figures.<str:end>", pages.file, name="evaluation-file"),
    path("evaluations/<int:pk>/stop/", pages.stop, name="evaluation-stop"),
    path("evaluations/<int:pk>/resume/", pages.resume, name="evaluation-resume"),
    path("evaluations/<int:pk>/score/", pages.score_again, name="evaluation-score-again"),
    path("evaluations/<int:pk>/repair/", pages.repair, name="evaluation-repair"),
    path("evaluations/<int:pk>/people/", pages.ask_people, name="evaluation-people"),
    path("evaluations/<int:pk>/delete/", pages.delete, name="evaluation-delete"),
    path("labels/<int:label>/check/", check_pages.new, name="label-check-new"),
    path("runs/<int:run>/check/new/", check_pages.new, name="run-check-new"),
    path("checks/<int:pk>/", check_pages.check, name="label-check"),
    path("checks/<int:pk>/judge/", judging_pages.judge, name="check-judge"),
    path("checks/<int:pk>/images/<int:question>/", judging_pages.image, name="check-image"),
    path("checks/<int:pk>/answer/", judging_pages.answer, name="check-answer"),
    path("checks/<int:pk>/undo/", judging_pages.undo, name="check-undo"),
    path("checks/<int:pk>/finish/", judging_pages.finish, name="check-finish"),
    path("checks/<int:pk>/answers.csv", judging_pages.file, name="check-answers"),
    path("runs/<int:pk>/check/", check_pages.mark_of_run, name="run-check"),
]
