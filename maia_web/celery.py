"""The Celery application. Jobs live in `workers.jobs`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "maia_web.settings")

app = Celery("maia_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
for module in ("rounds", "long", "sweep", "worker"):
    app.autodiscover_tasks(["workers.jobs"], related_name=module)
