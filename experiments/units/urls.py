"""Addresses of models, layers and units."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.units import pages

urlpatterns: list[URLPattern] = [
    path("units/", pages.index, name="units"),
    path("units/<unit_name:name>/", pages.model, name="units-model"),
    path("units/<unit_name:name>/<unit_name:layer_name>/", pages.layer, name="units-layer"),
    path("units/<unit_name:name>/<unit_name:layer_name>/random/", pages.random, name="unit-random"),
    path("units/<unit_name:name>/<unit_name:layer_name>/<unit_number:number>/", pages.unit, name="unit"),
    path(
        "units/<unit_name:name>/<unit_name:layer_name>/<unit_number:number>/exemplars/",
        pages.exemplars,
        name="unit-exemplars",
    ),
]
