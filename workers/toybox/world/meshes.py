"""Meshes: toys as nodes of the engine, with their colours and a little contact shade at the vertices.

Each toy is made once in each colour, then shown wherever it is needed. Called by `render` alone, under its lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.toybox.world.scenes import SHAPES
from workers.toybox.world.toys import TOYS, Part, Rgb

PAINTS: Mapping[str, Rgb] = {
    "red": (0.86, 0.09, 0.09),
    "orange": (1.0, 0.47, 0.03),
    "yellow": (1.0, 0.88, 0.12),
    "green": (0.13, 0.62, 0.18),
    "blue": (0.10, 0.30, 0.86),
    "purple": (0.50, 0.18, 0.72),
    "pink": (1.0, 0.56, 0.74),
    "brown": (0.45, 0.26, 0.13),
    "white": (0.96, 0.96, 0.95),
    "black": (0.12, 0.12, 0.13),
}

_VERTEX = np.dtype([("point", "<f4", 3), ("normal", "<f4", 3), ("rgba", "u1", 4)])
"""One vertex as the engine lays it out."""


@cache
def toy_node(noun: str, colour: str) -> Any:
    """The engine's node for a toy in a colour; made once, shown many times."""
    from panda3d.core import GeomNode

    node = GeomNode(noun)
    node.add_geom(_geom(TOYS[noun](), PAINTS[colour], SHAPES[noun].height))
    return node


def _geom(parts: tuple[Part, ...], body: Rgb, height: float) -> Any:
    """All parts as one mesh, with their colours and a little contact shade at the vertices."""
    from panda3d.core import Geom, GeomTriangles, GeomVertexData, GeomVertexFormat

    count = sum(len(part.solid.points) for part in parts)
    rows = np.zeros(count, _VERTEX)
    faces, start = [], 0
    for part in parts:
        stop = start + len(part.solid.points)
        rows[start:stop] = _vertices(part, body, height)
        faces.append(part.solid.faces + start)
        start = stop
    data = GeomVertexData("toy", GeomVertexFormat.get_v3n3c4(), Geom.UH_static)
    data.unclean_set_num_rows(count)
    data.modify_array_handle(0).copy_data_from(rows.tobytes())
    triangles = GeomTriangles(Geom.UH_static)
    triangles.set_index_type(Geom.NT_uint32)
    index = np.concatenate(faces).astype("<u4").ravel()
    array = triangles.modify_vertices()
    array.unclean_set_num_rows(len(index))
    array.modify_handle().copy_data_from(index.tobytes())
    geom = Geom(data)
    geom.add_primitive(triangles)
    return geom


def _vertices(part: Part, body: Rgb, height: float) -> NDArray[Any]:
    solid = part.solid
    rows = np.zeros(len(solid.points), _VERTEX)
    shade = 1 - 0.3 * np.clip(1 - solid.points[:, 2] / (0.22 * height), 0, 1) ** 2
    rgb = np.array(part.paint or body) * part.tone * shade[:, None]
    rows["point"], rows["normal"] = solid.points, solid.normals
    rows["rgba"][:, :3] = np.round(np.clip(rgb, 0, 1) * 255)
    rows["rgba"][:, 3] = 255
    return rows
