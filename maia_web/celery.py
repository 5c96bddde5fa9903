"""The Celery application. Jobs live in `workers.jobs`."""

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "maia_web.settings")

app = Celery("maia_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
for module in ("long", "recovery", "worker"):
    app.autodiscover_tasks(["workers.jobs"], related_name=module)


@setup_logging.connect
def leave_logging_alone(**_: Any) -> None:
    """With a receiver, Celery sets no logging up: that of the settings holds in every process."""
