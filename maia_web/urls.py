"""Addresses of the site."""

from django.contrib import admin
from django.urls import include, path

from experiments.api.interface import addresses

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include((addresses(), "api"))),
    path("", include("experiments.urls")),
]
