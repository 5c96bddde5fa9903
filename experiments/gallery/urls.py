"""Addresses of experiments and images."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.gallery import image_pages, pages

urlpatterns: list[URLPattern] = [
    path("experiments/", pages.index, name="experiments"),
    path("runs/<int:pk>/experiments/<int:n>/", pages.page, name="experiment"),
    path("images/<image_key:key>.png", image_pages.image, name="image"),
    path("images/<image_key:key>/", image_pages.page, name="image-page"),
    path("images/<image_key:key>/thumb-<int:size>.webp", image_pages.thumbnail, name="thumbnail"),
]
