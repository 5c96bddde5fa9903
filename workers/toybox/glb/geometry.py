"""Convert the nodes of a `.glb` file to coloured triangles, scaled to the size of a toy and placed on the ground.

In glTF y is up and the front is along z. Here z is up and the front is towards -y.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workers.toybox.glb.arrays import Floats, count_rows, read_indices, read_vectors
from workers.toybox.glb.container import BaseColour, Glb, GlbRefused, NodeRow, Primitive, get_row
from workers.toybox.glb.textures import Textures
from workers.toybox.world.scenes import Shape
from workers.toybox.world.surfaces import Surface

MAX_TRIANGLES = 200_000
MAX_POINTS = 600_000
_MAX_DEPTH = 64
_MAX_SURFACES = 1_000
_RADIUS, _HEIGHT = 0.70, 1.30
"""Maximum size of a toy from a file: half its width in any orientation, and its height, in world units."""
_MIN_SIZE = 0.05
"""Minimum of both for placing toys."""
_FARTHEST = 1e30
"""Maximum distance of a point, so that sums stay finite."""
_MAX_PLACE = 64.0
"""Maximum number of repetitions of a texture."""


@dataclass(frozen=True)
class _Use:
    """A primitive at the place of a node."""

    primitive: Primitive
    matrix: Floats


def build_surfaces(glb: Glb) -> tuple[Surface, ...]:
    """Return all triangles of a file's scene at the places of its nodes. Raises GlbRefused."""
    uses = list(_find_uses(glb))
    if not uses:
        raise GlbRefused("it has no mesh in its scene; export it with one")
    textures = Textures(glb)
    return _join_surfaces([_build_surface(glb, use, textures) for use in uses])


def fit_toy(surfaces: tuple[Surface, ...]) -> tuple[tuple[Surface, ...], Shape]:
    """Return the surfaces scaled to a toy, centred and on the ground, and their measures. Raises GlbRefused."""
    points = np.concatenate([each.points for each in surfaces])
    # 1. Measure, and refuse what cannot be scaled
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max())
    # `not … < …` also refuses NaN
    if not np.abs(points).max() < _FARTHEST or size < 1e-12 or not any(_has_area(each, size) for each in surfaces):
        raise GlbRefused("its triangles have no size, or an endless one; repair the mesh and export it again")
    # 2. The foot is the middle of the ground area, at the lowest point
    foot = np.array([*((low + high) / 2)[:2], low[2]])
    # Divided first, since squares of large numbers overflow
    reach = float(np.hypot(*((points - foot) / size)[:, :2].T).max()) * size
    height = float(high[2] - low[2])
    # 3. The tighter limit decides. A flat mesh has one measure of 0, which limits nothing
    scale = min(limit / length for limit, length in ((_RADIUS, reach), (_HEIGHT, height)) if length > 0)
    fitted = tuple(replace(each, points=(each.points - foot) * scale) for each in surfaces)
    radius, top = max(_MIN_SIZE, reach * scale), max(_MIN_SIZE, height * scale)
    return fitted, Shape(round(radius, 3), round(top, 3), round(top, 3))


def _join_surfaces(surfaces: Sequence[Surface]) -> tuple[Surface, ...]:
    """Join surfaces with the same texture: a few large ones are drawn faster than many small ones."""
    groups: dict[int, list[Surface]] = {}
    for each in surfaces:
        # By identity: `Textures` decodes each image once
        groups.setdefault(id(each.texture), []).append(each)
    return tuple(_join_group(group) for group in groups.values())


def _join_group(group: Sequence[Surface]) -> Surface:
    # Faces hold numbers of points, which move when the points are joined
    starts = np.cumsum([0, *(len(each.points) for each in group[:-1])])
    places = [each.places for each in group if each.places is not None]
    return Surface(
        np.concatenate([each.points for each in group]),
        np.concatenate([each.normals for each in group]),
        np.concatenate([each.colours for each in group]),
        np.concatenate([each.faces + start for each, start in zip(group, starts, strict=True)]),
        np.concatenate(places) if places else None,
        group[0].texture,
    )


def _has_area(surface: Surface, size: float) -> bool:
    a, b, c = (surface.points[surface.faces[:, k]] / size for k in range(3))
    return bool(np.linalg.norm(np.cross(b - a, c - a), axis=1).max() > 1e-9)


# --- the tree ---------------------------------------------------------------------------------------


def _find_uses(glb: Glb) -> Iterator[_Use]:
    """Yield every primitive in the scene. They are counted before any is processed, so that a hostile file costs
    little."""
    triangles = points = surfaces = 0
    for node, matrix in _walk_nodes(glb):
        if node.skin is not None:
            raise GlbRefused("it has a skeleton; apply the pose and export it without (in Blender: Apply Armature)")
        if node.mesh is None:
            continue
        for primitive in get_row(glb.document.meshes, node.mesh, "meshes").primitives:
            rows, corners = _measure(glb, primitive)
            triangles, points, surfaces = triangles + corners // 3, points + rows, surfaces + 1
            if triangles > MAX_TRIANGLES or points > MAX_POINTS or surfaces > _MAX_SURFACES:
                raise GlbRefused(
                    f"it has over {MAX_TRIANGLES:,} triangles, {MAX_POINTS:,} vertices or {_MAX_SURFACES:,} parts; "
                    "reduce the mesh (in Blender: Decimate, Join)"
                )
            yield _Use(primitive, matrix)


def _walk_nodes(glb: Glb) -> Iterator[tuple[NodeRow, Floats]]:
    """Yield the nodes of the scene with the matrix that maps each to the world."""
    document = glb.document
    # A file need not have a scene: then all nodes that are no children are roots
    inner = {child for node in document.nodes for child in node.children}
    roots = [at for at in range(len(document.nodes)) if at not in inner]
    if document.scenes:
        roots = get_row(document.scenes, document.scene, "scenes").nodes
    seen: set[int] = set()
    # Depth first with a stack of its own: a deep file must not exhaust Python's
    waiting = [(root, np.eye(4), 1) for root in reversed(roots)]
    while waiting:
        at, above, depth = waiting.pop()
        node = get_row(document.nodes, at, "nodes")
        # glTF demands a tree. In a graph with shared nodes, the number of paths may explode
        if at in seen:
            raise GlbRefused(f"nodes[{at}] has two parents, or is its own; export it again")
        if depth > _MAX_DEPTH:
            raise GlbRefused(f"its nodes are over {_MAX_DEPTH} deep; join what belongs together")
        seen.add(at)
        matrix = np.einsum("ij,jk->ik", above, _make_matrix(node))
        yield node, matrix
        waiting += [(child, matrix, depth + 1) for child in reversed(node.children)]


def _make_matrix(node: NodeRow) -> Floats:
    if node.matrix is not None:
        # glTF stores matrices by columns
        return np.array(node.matrix).reshape(4, 4).T
    # Quaternions should have length 1; exporters round them
    x, y, z, w = np.array(node.rotation) / max(float(np.linalg.norm(node.rotation)), 1e-12)
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    matrix = np.eye(4)
    matrix[:3, :3] = turn * np.array(node.scale)
    matrix[:3, 3] = node.translation
    return matrix


def _measure(glb: Glb, primitive: Primitive) -> tuple[int, int]:
    """Return the number of points of a primitive and of corners of its triangles, as it declares them."""
    if primitive.mode != 4:
        raise GlbRefused("it has points, lines, strips or fans; export it with triangles alone")
    if "POSITION" not in primitive.attributes:
        raise GlbRefused("a mesh in it has no positions; export it uncompressed")
    rows = count_rows(glb, primitive.attributes["POSITION"])
    return rows, rows if primitive.indices is None else count_rows(glb, primitive.indices)


# --- one surface ------------------------------------------------------------------------------------


def _build_surface(glb: Glb, use: _Use, textures: Textures) -> Surface:
    primitive, matrix = use.primitive, use.matrix
    count, _ = _measure(glb, primitive)
    points = read_vectors(glb, primitive.attributes["POSITION"], ("VEC3",), count)
    # 1. Points, faces and colours, as the file has them
    faces = _read_faces(glb, primitive, count)
    base = _find_colour(glb, primitive)
    colours = _project_to_screen(_read_colours(glb, primitive, count) * np.array(base.base_color_factor[:3]))
    used = base.base_color_texture
    places = None if used is None else _read_places(glb, primitive, used.tex_coord, count)
    image = textures.load(used) if used is not None and places is not None else None
    # 2. Into the world
    with np.errstate(all="ignore"):  # what is not finite is refused when all is made as large as a toy
        moved = _turn_up(np.einsum("ij,nj->ni", matrix[:3, :3], points) + matrix[:3, 3])
        normals = _read_normals(glb, primitive, matrix, count)
        is_mirrored = np.linalg.det(matrix[:3, :3]) < 0
    # 3. A mirroring matrix turns the triangles inside out; reversed corners turn them back
    faces = faces[:, ::-1] if is_mirrored else faces
    surface = Surface(moved, moved if normals is None else normals, colours, faces, places, image)
    return _flatten(surface) if normals is None else surface


def _read_faces(glb: Glb, primitive: Primitive, count: int) -> NDArray[np.int64]:
    if primitive.indices is not None:
        return read_indices(glb, primitive.indices, count)
    if count % 3:
        raise GlbRefused(f"a mesh in it has {count:,} corners, which are no triangles; export it again")
    return np.arange(count).reshape(-1, 3)


def _find_colour(glb: Glb, primitive: Primitive) -> BaseColour:
    if primitive.material is None:
        return BaseColour()
    return get_row(glb.document.materials, primitive.material, "materials").pbr_metallic_roughness


def _read_colours(glb: Glb, primitive: Primitive, count: int) -> Floats:
    if "COLOR_0" not in primitive.attributes:
        return np.ones((count, 3))
    return read_vectors(glb, primitive.attributes["COLOR_0"], ("VEC3", "VEC4"), count, shares=True)[:, :3]


def _read_places(glb: Glb, primitive: Primitive, number: int, count: int) -> Floats | None:
    """Return the texture coordinates of each point; None if the file has none."""
    at = primitive.attributes.get(f"TEXCOORD_{number}")
    if at is None:
        return None
    return np.clip(read_vectors(glb, at, ("VEC2",), count, shares=True), -_MAX_PLACE, _MAX_PLACE)


def _read_normals(glb: Glb, primitive: Primitive, matrix: Floats, count: int) -> Floats | None:
    """Return the file's normals in world coordinates; None if it has none, and triangles are then flat."""
    if "NORMAL" not in primitive.attributes:
        return None
    normals = read_vectors(glb, primitive.attributes["NORMAL"], ("VEC3",), count)
    a, b, c = matrix[:3, :3].T
    # The cofactors are the inverse, transposed, times the determinant: they exist for flat matrices too
    cofactors = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)
    sign = -1.0 if np.dot(a, np.cross(b, c)) < 0 else 1.0
    return _normalize_length(_turn_up(np.einsum("ij,nj->ni", cofactors, normals) * sign))


def _flatten(surface: Surface) -> Surface:
    """Return the surface with three separate points for each triangle, which makes its shading flat."""
    at = surface.faces.ravel()
    points = surface.points[at]
    a, b, c = (points[k::3] for k in range(3))
    with np.errstate(over="ignore", invalid="ignore"):
        normals = _normalize_length(np.cross(b - a, c - a)).repeat(3, axis=0)
    places = None if surface.places is None else surface.places[at]
    faces = np.arange(len(at)).reshape(-1, 3)
    return Surface(points, normals, surface.colours[at], faces, places, surface.texture)


def _turn_up(vectors: Floats) -> Floats:
    # y up, front along z becomes z up, front towards -y
    return vectors[:, [0, 2, 1]] * np.array([1.0, -1.0, 1.0])


def _normalize_length(vectors: Floats) -> Floats:
    # Normals of empty triangles have length 0
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)


def _project_to_screen(colours: Floats) -> Floats:
    """Convert linear light, as in glTF's factors and vertex colours, to screen values."""
    return np.clip(colours, 0, 1) ** (1 / 2.2)
