"""The Celery application. Jobs live in `workers.jobs`."""

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging, task_prerun
from django.conf import settings
from django.urls import set_script_prefix

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "maia_web.settings")

app = Celery("maia_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
for module in ("long", "recovery", "worker"):
    app.autodiscover_tasks(["workers.jobs"], related_name=module)


@setup_logging.connect
def leave_logging_alone(**_: Any) -> None:
    """Keep Celery from configuring logging: the settings' logging applies in every process."""


@task_prerun.connect
def set_prefix(**_: Any) -> None:
    """Prefix addresses that a job writes with MAIA_PREFIX. Django keeps the prefix for each thread."""
    set_script_prefix(f"{settings.PREFIX}/")
