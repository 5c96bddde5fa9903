"""URLs of the app by feature. tests/house/test_access.py tests access to each of them."""

from __future__ import annotations

from django.urls import URLResolver, include, path, register_converter

from experiments.core.sockets import TopicConsumer
from experiments.runs.events.socket import RunConsumer
from experiments.units.addresses import Name, Number


class ImageKey:
    """A SHA-256 in lower-case hex. Nothing else reaches the image store."""

    regex = "[0-9a-f]{64}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(ImageKey, "image_key")
register_converter(Name, "unit_name")
register_converter(Number, "unit_number")

FEATURES = (
    "accounts",
    "circuits",
    "comments",
    "evaluations",
    "exchange",
    "gallery",
    "installation",
    "judging",
    "label_checks",
    "pairwise",
    "reviews",
    "runs",
    "search",
    "sharing",
    "studies",
    "sweeps",
    "units",
    "webhooks",
)
urlpatterns: list[URLResolver] = [path("", include(f"experiments.{feature}.urls")) for feature in FEATURES]

websocket_urlpatterns = [
    path("ws/runs/<int:pk>/", RunConsumer.as_asgi()),
    path("ws/live/", TopicConsumer.as_asgi()),
]
