"""Addresses of the app. The access of every one of them is tested in tests/test_access.py."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, path, register_converter
from django.views.generic import RedirectView

from experiments.consumers import RunConsumer
from experiments.views import images, query, run, runs, sign_in


class ImageKey:
    """A SHA-256 in lower-case hex: nothing else reaches the image store."""

    regex = "[0-9a-f]{64}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(ImageKey, "image_key")

urlpatterns: list[URLPattern] = [
    path("", RedirectView.as_view(pattern_name="runs"), name="home"),
    path("sign-in/", sign_in.SignIn.as_view(), name="sign-in"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path("enter/<str:token>/", sign_in.enter, name="enter"),
    path("runs/", runs.index, name="runs"),
    path("runs/<int:pk>/", run.page, name="run"),
    path("runs/<int:pk>/stop/", run.stop, name="run-stop"),
    path("query/", query.page, name="query"),
    path("query/unit/", query.unit, name="query-unit"),
    path("query/command/", query.command, name="query-command"),
    path("images/<image_key:key>.png", images.image, name="image"),
    path("pulse/", runs.pulse, name="pulse"),
]

websocket_urlpatterns = [path("ws/runs/<int:pk>/", RunConsumer.as_asgi())]
