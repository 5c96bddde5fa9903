"""Meshes: toys as nodes of the engine, with their colours and a little contact shade at the vertices.

Each toy is made once in each colour, then shown wherever it is needed. Called by `render` alone, under its lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image, fromarray

from workers.toybox.world.scenes import OWN_COLOUR, SHAPES
from workers.toybox.world.surfaces import AddedToy, Floats, Surface
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

_LAYOUT = [("point", "<f4", 3), ("normal", "<f4", 3), ("rgba", "u1", 4)]
_VERTEX = np.dtype(_LAYOUT)
"""One vertex as the engine lays it out."""
_PLACED_VERTEX = np.dtype([*_LAYOUT, ("place", "<f4", 2)])
"""The same with its place in a texture."""
_LUMA = np.array([0.2126, 0.7152, 0.0722])
"""How light red, green and blue look."""
_DARKEST = 0.4
"""How bright the darkest part of a tinted toy is."""


@cache
def toy_node(noun: str, colour: str) -> Any:
    """The engine's node for a toy in a colour; made once, shown many times."""
    from panda3d.core import GeomNode

    node = GeomNode(noun)
    node.add_geom(_geom(TOYS[noun](), PAINTS[colour], SHAPES[noun].height))
    return node


@lru_cache(maxsize=64)
def added_node(toy: AddedToy, colour: str) -> Any:
    """The engine's node for a toy of a file: in its own colours, or all of it in shades of one that is named."""
    from panda3d.core import GeomNode, RenderState, TextureAttrib

    node = GeomNode("added")
    lightest = max(float((each.colours @ _LUMA).max()) for each in toy.surfaces)
    for surface in toy.surfaces:
        rgb, picture, state = surface.colours, surface.texture, RenderState.make_empty()
        if colour != OWN_COLOUR:
            rgb = _shade_by(rgb @ _LUMA, lightest)[:, None] * np.array(PAINTS[colour])
            picture = _make_grey(picture) if picture else None
        if picture:
            state = RenderState.make(TextureAttrib.make(_make_texture(picture)))
        rows = _fill_vertices(surface, rgb * _shade_foot(surface.points, toy.shape.height))
        node.add_geom(_build_geom(rows, surface.faces), state)
    return node


def _shade_by(light: Floats, lightest: float) -> Floats:
    """How bright the parts of a tinted toy are: the lightest have the colour whole, and none is black."""
    shade: Floats = _DARKEST + (1 - _DARKEST) * np.clip(light / max(lightest, 1e-3), 0, 1)
    return shade


def _make_grey(picture: Image) -> Image:
    """A texture that keeps its pattern and leaves the colour to the toy."""
    light = np.asarray(picture.convert("L"), float)
    # A few pixels that are lighter than all others do not count
    shade = _shade_by(light, float(np.quantile(light, 0.98)))
    return fromarray(np.round(shade * 255).astype(np.uint8)).convert("RGB")


def _make_texture(picture: Image) -> Any:
    from panda3d.core import SamplerState, Texture

    texture = Texture("added")
    texture.setup_2d_texture(picture.width, picture.height, Texture.T_unsigned_byte, Texture.F_rgb)
    # The engine's first row is at the bottom, at v = 0, where glTF has the top: so rows stay as they are
    texture.set_ram_image_as(picture.tobytes(), "RGB")
    texture.set_minfilter(SamplerState.FT_linear_mipmap_linear)
    texture.set_magfilter(SamplerState.FT_linear)
    return texture


def _fill_vertices(surface: Surface, rgb: Floats) -> NDArray[Any]:
    rows = np.zeros(len(surface.points), _VERTEX if surface.places is None else _PLACED_VERTEX)
    rows["point"], rows["normal"] = surface.points, surface.normals
    rows["rgba"] = _to_rgba(rgb)
    if surface.places is not None:
        rows["place"] = surface.places
    return rows


def _geom(parts: tuple[Part, ...], body: Rgb, height: float) -> Any:
    """All parts as one mesh, with their colours and a little contact shade at the vertices."""
    count = sum(len(part.solid.points) for part in parts)
    rows = np.zeros(count, _VERTEX)
    faces, start = [], 0
    for part in parts:
        stop = start + len(part.solid.points)
        rows[start:stop] = _vertices(part, body, height)
        faces.append(part.solid.faces + start)
        start = stop
    return _build_geom(rows, np.concatenate(faces))


def _build_geom(rows: NDArray[Any], faces: NDArray[np.int64]) -> Any:
    """Vertices and triangles as the engine has them."""
    from panda3d.core import Geom, GeomTriangles, GeomVertexData, GeomVertexFormat

    is_plain = rows.dtype == _VERTEX
    layout = GeomVertexFormat.get_v3n3c4() if is_plain else GeomVertexFormat.get_v3n3c4t2()
    data = GeomVertexData("toy", layout, Geom.UH_static)
    data.unclean_set_num_rows(len(rows))
    data.modify_array_handle(0).copy_data_from(rows.tobytes())
    triangles = GeomTriangles(Geom.UH_static)
    triangles.set_index_type(Geom.NT_uint32)
    index = faces.astype("<u4").ravel()
    array = triangles.modify_vertices()
    array.unclean_set_num_rows(len(index))
    array.modify_handle().copy_data_from(index.tobytes())
    geom = Geom(data)
    geom.add_primitive(triangles)
    return geom


def _vertices(part: Part, body: Rgb, height: float) -> NDArray[Any]:
    solid = part.solid
    rows = np.zeros(len(solid.points), _VERTEX)
    rows["point"], rows["normal"] = solid.points, solid.normals
    rows["rgba"] = _to_rgba(np.array(part.paint or body) * part.tone * _shade_foot(solid.points, height))
    return rows


def _shade_foot(points: Floats, height: float) -> Floats:
    """How bright a toy is at its points, (n, 1): a little darker near the ground."""
    shade: Floats = 1 - 0.3 * np.clip(1 - points[:, 2] / (0.22 * height), 0, 1) ** 2
    return shade[:, None]


def _to_rgba(rgb: Floats) -> NDArray[np.uint8]:
    rgba = np.full((len(rgb), 4), 255, np.uint8)
    rgba[:, :3] = np.round(np.clip(rgb, 0, 1) * 255)
    return rgba
