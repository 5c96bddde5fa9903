"""Addresses of review queues, their items, and agreement."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.reviews import outcome_pages, pages, writing_pages
from experiments.reviews.agreement import pages as agreement

urlpatterns: list[URLPattern] = [
    path("runs/<int:pk>/review/", outcome_pages.put_up, name="run-review"),
    path("review/", pages.index, name="review"),
    path("review/new/", pages.new, name="review-new"),
    path("review/<int:pk>/", pages.queue, name="review-queue"),
    path("review/<int:pk>/agreement/", agreement.page, name="review-agreement"),
    path("review/<int:pk>/close/", pages.close, name="review-close"),
    path("review/<int:pk>/next/", pages.next_item, name="review-next"),
    path("review/<int:pk>/undo/", writing_pages.undo, name="review-undo"),
    path("review/<int:pk>/items/<int:position>/", pages.item, name="review-item"),
    path("review/<int:pk>/items/<int:position>/line/", pages.line, name="review-line"),
    path("review/<int:pk>/items/<int:position>/ahead/", pages.ahead, name="review-ahead"),
    path("review/<int:pk>/items/<int:position>/take/", writing_pages.take, name="review-take"),
    path("review/<int:pk>/items/<int:position>/hold/", writing_pages.hold, name="review-hold"),
    path("review/<int:pk>/items/<int:position>/save/", writing_pages.save, name="review-save"),
    path("review/<int:pk>/items/<int:position>/submit/", writing_pages.submit, name="review-submit"),
    path("review/<int:pk>/items/<int:position>/decline/", writing_pages.decline, name="review-decline"),
    path("review/<int:pk>/items/<int:position>/final/", outcome_pages.adjudicate, name="review-final"),
]
