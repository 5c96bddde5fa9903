"""All that words can say of a scene, to compare scenes by."""

from __future__ import annotations

from collections import Counter

from workers.toybox.world.scenes import Scene


def facts(scene: Scene) -> tuple[object, ...]:
    """Kinds with their counts, what stands on what, ground, light."""
    kinds = [(thing.noun, thing.colour, thing.size) for thing in scene.things]
    stacked = Counter((kinds[k], kinds[thing.on]) for k, thing in enumerate(scene.things) if thing.on is not None)
    return frozenset(Counter(kinds).items()), frozenset(stacked.items()), scene.ground, scene.light
