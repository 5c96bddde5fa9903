"""Addresses of models, layers and units."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.units import beside, cards, map_pages, pages, search_pages

# Names of models and layers contain "/", so the converters of `addresses` encode them.
urlpatterns: list[URLPattern] = [
    path("units/", pages.index, name="units"),
    path("compare/layers/", beside.beside, name="units-beside"),
    path("search/units/", search_pages.search, name="units-search"),
    path("units/<unit_name:name>/", map_pages.model, name="units-model"),
    path("units/<unit_name:name>/<unit_name:layer_name>/", map_pages.layer, name="units-layer"),
    path("units/<unit_name:name>/<unit_name:layer_name>/exemplars/", map_pages.layer_exemplars, name="units-exemplars"),
    path("units/<unit_name:name>/<unit_name:layer_name>/chosen/", map_pages.choose, name="units-chosen"),
    path("units/<unit_name:name>/<unit_name:layer_name>/random/", map_pages.random, name="unit-random"),
    path("units/<unit_name:name>/<unit_name:layer_name>/<unit_number:number>/", pages.unit, name="unit"),
    path("units/<unit_name:name>/<unit_name:layer_name>/<unit_number:number>/card/", cards.show_card, name="unit-card"),
    path(
        "units/<unit_name:name>/<unit_name:layer_name>/<unit_number:number>/exemplars/",
        map_pages.exemplars,
        name="unit-exemplars",
    ),
    path(
        "units/<unit_name:name>/<unit_name:layer_name>/<unit_number:number>/causal/",
        pages.causal_check,
        name="unit-causal",
    ),
]
