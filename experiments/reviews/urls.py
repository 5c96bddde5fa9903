"""URLs of review queues, their items, and agreement."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.reviews import item_pages, pages
from experiments.reviews.agreement import pages as agreement

urlpatterns: list[URLPattern] = [
    path("runs/<int:pk>/review/", pages.put_up, name="run-review"),
    path("review/", pages.index, name="review"),
    path("review/new/", pages.new, name="review-new"),
    path("review/<int:pk>/", pages.queue, name="review-queue"),
    path("review/<int:pk>/agreement/", agreement.page, name="review-agreement"),
    path("review/<int:pk>/close/", pages.close, name="review-close"),
    path("review/<int:pk>/next/", item_pages.next_item, name="review-next"),
    path("review/<int:pk>/undo/", item_pages.undo, name="review-undo"),
    path("review/<int:pk>/items/<int:position>/", item_pages.item, name="review-item"),
    path("review/<int:pk>/items/<int:position>/line/", item_pages.line, name="review-line"),
    path("review/<int:pk>/items/<int:position>/ahead/", item_pages.preload_next, name="review-ahead"),
    path("review/<int:pk>/items/<int:position>/take/", item_pages.take, name="review-take"),
    path("review/<int:pk>/items/<int:position>/hold/", item_pages.keep_reservation, name="review-hold"),
    path("review/<int:pk>/items/<int:position>/save/", item_pages.save, name="review-save"),
    path("review/<int:pk>/items/<int:position>/submit/", item_pages.submit, name="review-submit"),
    path("review/<int:pk>/items/<int:position>/decline/", item_pages.decline, name="review-decline"),
    path("review/<int:pk>/items/<int:position>/final/", item_pages.settle_item, name="review-final"),
]
