"""Parameters with which a game engine draws a scene, besides its prompt: names, ranges and units.

Used by the tool that checks a program's arguments, by the engine, and by pages that plot and filter its images.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class EngineParameter:
    """A parameter of the view. If `usual` is None, the prompt or the seed decides when it is not given."""

    label: str
    least: float
    most: float
    usual: float | None
    unit: str = ""
    meaning: str = ""
    is_whole: bool = False


ENGINE_PARAMETERS: Mapping[str, EngineParameter] = {
    "camera": EngineParameter("Camera", -360, 360, 0, "°", "degrees around the toys, 90 from their right"),
    "elevation": EngineParameter("Elevation", 5, 90, 23, "°", "degrees above the ground, 90 from above"),
    "distance": EngineParameter("Distance", 7, 42, 14, "", "of the camera: twice as far, half as large"),
    "light": EngineParameter("Light", 0.2, 2, 1, "", "brightness of the whole picture"),
    "size": EngineParameter("Size", 0.25, 2, 1, "", "scale of the toys"),
    "count": EngineParameter("Count", 1, 6, None, "", "toys of the kind that the prompt names", is_whole=True),
    "pose": EngineParameter("Pose", -360, 360, None, "°", "degrees that the toys are turned, 0 as they are known best"),
}
CAMERAS: Mapping[str, tuple[float, float]] = {
    "front": (0, 23),
    "right": (90, 23),
    "back": (180, 23),
    "left": (-90, 23),
    "above": (0, 90),
}
"""Camera positions by name: (azimuth, elevation) in degrees."""


def read_parameters(scene: Any) -> dict[str, float]:
    """Get the parameters that a scene in plain data was drawn with; empty if no game engine drew it."""
    given = scene.get("parameters") if isinstance(scene, Mapping) else None
    return keep_known(given) if isinstance(given, Mapping) else {}


def keep_known(given: Mapping[Any, Any]) -> dict[str, float]:
    """Keep the parameters of the table whose values are within its bounds: records may come from anywhere."""
    numbers = {name: given[name] for name in ENGINE_PARAMETERS if _is_number(given.get(name))}
    limits = ENGINE_PARAMETERS
    return {name: float(x) for name, x in numbers.items() if limits[name].least <= x <= limits[name].most}


def format_parameter(name: str, value: float) -> str:
    """Format a parameter for a title, such as "camera 40°" or "light 1.5"."""
    return f"{name} {value:.6g}{ENGINE_PARAMETERS[name].unit}"


def _is_number(value: Any) -> bool:
    # A bool is an int for Python
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
