"""Settings, URLs, and the ASGI and Celery applications."""

from maia_web.celery import app as celery_app

__all__ = ["celery_app"]
