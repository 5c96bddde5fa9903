"""Addresses of the installation: overview, models, datasets, workers, jobs."""

from __future__ import annotations

from django.urls import URLPattern, path
from django.views.generic import RedirectView

from experiments.installation import dataset_pages, job_pages, model_pages, overview_pages, worker_pages

urlpatterns: list[URLPattern] = [
    path("", overview_pages.page, name="overview"),
    path("pulse/", overview_pages.pulse, name="pulse"),
    path("settings/", RedirectView.as_view(pattern_name="settings-models"), name="settings"),
    path("settings/models/", model_pages.page, name="settings-models"),
    path("settings/models/add/", model_pages.add, name="settings-models-add"),
    path("settings/models/look/", model_pages.look, name="settings-look"),
    path("settings/models/<int:pk>/layers/", model_pages.layers, name="settings-layers"),
    path("settings/models/<int:pk>/remove/", model_pages.remove, name="settings-models-remove"),
    path("settings/datasets/", dataset_pages.page, name="settings-datasets"),
    path("settings/datasets/add/", dataset_pages.add, name="settings-datasets-add"),
    path("settings/datasets/index/", dataset_pages.index, name="settings-index"),
    path("settings/datasets/<int:pk>/remove/", dataset_pages.remove, name="settings-datasets-remove"),
    path("settings/jobs/<int:pk>/stop/", job_pages.stop, name="settings-job-stop"),
    path("settings/jobs/<int:pk>/go-on/", job_pages.go_on, name="settings-job-go-on"),
    path("settings/workers/", worker_pages.page, name="settings-workers"),
]
