"""URLs of the installation: overview, health, models, datasets, auto-encoders, workers, jobs."""

from __future__ import annotations

from django.urls import URLPattern, path
from django.views.generic import RedirectView

from experiments.installation import health_pages, pages

urlpatterns: list[URLPattern] = [
    path("", pages.overview, name="overview"),
    path("healthz", health_pages.healthz, name="healthz"),
    path("readyz", health_pages.readyz, name="readyz"),
    path("metrics", health_pages.metrics, name="metrics"),
    path("pulse/", pages.show_status, name="pulse"),
    path("settings/", RedirectView.as_view(pattern_name="settings-models"), name="settings"),
    path("settings/models/", pages.models, name="settings-models"),
    path("settings/models/add/", pages.add_model, name="settings-models-add"),
    path("settings/models/refresh/", pages.refresh_catalogue, name="settings-refresh"),
    path("settings/models/<int:pk>/layers/", pages.layers, name="settings-layers"),
    path("settings/models/<int:pk>/remove/", pages.remove_model, name="settings-models-remove"),
    path("settings/datasets/", pages.datasets, name="settings-datasets"),
    path("settings/datasets/add/", pages.add_dataset, name="settings-datasets-add"),
    path("settings/datasets/index/", pages.add_index, name="settings-index"),
    path("settings/datasets/<int:pk>/remove/", pages.remove_dataset, name="settings-datasets-remove"),
    path("settings/autoencoders/", pages.autoencoders, name="settings-autoencoders"),
    path("settings/autoencoders/train/", pages.train_autoencoder, name="settings-autoencoders-train"),
    path("settings/autoencoders/<int:pk>/", pages.autoencoder, name="settings-autoencoder"),
    path("settings/autoencoders/<int:pk>/measure/", pages.measure_autoencoder, name="settings-autoencoder-measure"),
    path("settings/jobs/<int:pk>/stop/", pages.stop_job, name="settings-job-stop"),
    path("settings/jobs/<int:pk>/resume/", pages.resume_job, name="settings-job-resume"),
    path("settings/workers/", pages.workers, name="settings-workers"),
]
