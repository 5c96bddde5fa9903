"""URLs of share links, and of the runs and studies under them."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.sharing import outside_pages, pages

urlpatterns: list[URLPattern] = [
    path("runs/<int:pk>/shares/", pages.of_run, name="run-shares"),
    path("runs/<int:pk>/shares/<int:share>/revoke/", pages.revoke, name="share-revoke"),
    path("studies/<int:pk>/shares/", pages.of_study, name="study-shares"),
    path("studies/<int:pk>/shares/<int:share>/revoke/", pages.revoke_of_study, name="study-share-revoke"),
    path("shared/<str:token>/", outside_pages.page, name="shared"),
    path("shared/<str:token>/runs/<int:number>/", outside_pages.run_page, name="shared-run"),
    path("shared/<str:token>/images/<image_key:key>.png", outside_pages.image, name="shared-image"),
    path(
        "shared/<str:token>/images/<image_key:key>/thumb-<int:size>.webp",
        outside_pages.thumbnail,
        name="shared-thumbnail",
    ),
    path("settings/shares/", pages.every, name="settings-shares"),
]
