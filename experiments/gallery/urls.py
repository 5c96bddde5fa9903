"""Addresses of experiments and images."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.gallery import pages

urlpatterns: list[URLPattern] = [
    path("experiments/", pages.index, name="experiments"),
    path("runs/<int:pk>/experiments/<int:n>/", pages.experiment, name="experiment"),
    path("images/<image_key:key>.png", pages.image, name="image"),
    path("images/<slug:beginning>.webp", pages.picture, name="picture"),
    path("images/<image_key:key>/", pages.image_page, name="image-page"),
    path("images/<image_key:key>/thumb-<int:size>.webp", pages.thumbnail, name="thumbnail"),
]
