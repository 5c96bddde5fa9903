"""Addresses of the site."""

from django.urls import include, path

from experiments.admin import site
from experiments.api.interface import addresses

urlpatterns = [
    path("admin/", site.urls),
    path("api/v1/", include((addresses(), "api"))),
    path("", include("experiments.urls")),
]
