"""Addresses of units that every member may read, for the tables of tests/house/addresses.py."""

from __future__ import annotations

READ_UNITS = {
    "units": "/units/",
    "units-model": "/units/own/",
    "units-layer": "/units/own/fc/",
    "unit-random": "/units/own/fc/random/",
    "unit": "/units/own/fc/1/",
    "units-search": "/search/units/",
    "units-beside": "/compare/layers/",
    "unit-card": "/units/own/fc/1/card/",
}
