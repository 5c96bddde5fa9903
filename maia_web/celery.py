"""The Celery application. Jobs live in `workers.jobs`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "maia_web.settings")

app = Celery("maia_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["workers.jobs"], related_name="rounds")
app.autodiscover_tasks(["workers.jobs"], related_name="long")
app.autodiscover_tasks(["workers.jobs"], related_name="sweep")
