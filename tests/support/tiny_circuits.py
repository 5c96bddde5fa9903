"""Circuits of the tiny laboratory: its network, one laid over it, and another network."""

from __future__ import annotations

from tests.support.tiny_lab import TinyModel
from workers.protocols import LayerInfo
from workers.record.systems import SystemSpec


class TinyOverlay(TinyModel):
    """Laid over `tiny`: one latent on a grid half as fine, twice the highest red value."""

    base = "tiny"
    name = "over"

    def layers(self):
        return [LayerInfo("patches", "conv", "latent", 1)]

    def maps(self, images, layers):
        found = super().maps(images, ["patches"])["patches"][:, :1]
        return {layer: 2 * found.amax((2, 3), keepdim=True) for layer in layers}


def load_overlay(settings):
    return TinyOverlay()


def circuit_spec(*members, network="tiny", **changes):
    """Each member is a model, a layer and a unit."""
    given = [dict(zip(("model", "layer", "unit"), each, strict=True)) for each in members]
    known = {"layer": "circuit", "unit": 0, "options": {"members": given}} | changes
    return SystemSpec("circuit", network, **known)
