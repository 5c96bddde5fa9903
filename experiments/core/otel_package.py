"""Check that the package for sending spans of runs is installed, if a collector of them is configured.

The web process and `manage.py check` call it, so it imports nothing of that package.
"""

from __future__ import annotations

from importlib.util import find_spec

from django.conf import settings


def explain_missing_package() -> str:
    """Explain why no spans are sent although OTEL_EXPORTER_OTLP_ENDPOINT is set, with the remedy; "" if they can be."""
    if not settings.OTEL_ENDPOINT or _is_installed():
        return ""
    return (
        "OTEL_EXPORTER_OTLP_ENDPOINT is set, and the package opentelemetry-proto is not installed, so no spans of runs "
        "are sent. Install it (pip install opentelemetry-proto), or unset the variable."
    )


def _is_installed() -> bool:
    try:
        return find_spec("opentelemetry.proto.collector.trace.v1") is not None
    except (ImportError, ValueError):  # a package above it is not there
        return False
