"""Solids: triangle meshes that toys are put together from. Pure NumPy; knows no colours, no toys and no engine.

A solid is centred on the z axis unless said otherwise; triangles run counter-clockwise seen from outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Point = tuple[float, float]


@dataclass(frozen=True)
class Solid:
    """points and normals (n, 3), faces (m, 3) as indices of points."""

    points: Floats
    normals: Floats
    faces: NDArray[np.int64]

    def at(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Solid:
        """Moved by (x, y, z)."""
        return Solid(self.points + np.array([x, y, z]), self.normals, self.faces)

    def scaled(self, x: float, y: float, z: float) -> Solid:
        """Stretched along the axes about the origin; all factors positive."""
        factors = np.array([x, y, z])
        normals = self.normals / factors
        return Solid(self.points * factors, normals / np.linalg.norm(normals, axis=1, keepdims=True), self.faces)

    def turned(self, axis: str, degrees: float) -> Solid:
        """Turned about the x, y or z axis through the origin."""
        angle = math.radians(degrees)
        c, s = math.cos(angle), math.sin(angle)
        matrix = np.array(
            {
                "x": [[1, 0, 0], [0, c, -s], [0, s, c]],
                "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]],
                "z": [[c, -s, 0], [s, c, 0], [0, 0, 1]],
            }[axis]
        )
        # einsum, unlike a matrix product, adds in the same order on every processor
        points, normals = (np.einsum("ij,nj->ni", matrix, each) for each in (self.points, self.normals))
        return Solid(points, normals, self.faces)


def join_solids(*solids: Solid) -> Solid:
    """Several solids as one."""
    starts = np.cumsum([0] + [len(solid.points) for solid in solids[:-1]])
    return Solid(
        np.concatenate([solid.points for solid in solids]),
        np.concatenate([solid.normals for solid in solids]),
        np.concatenate([solid.faces + start for solid, start in zip(solids, starts, strict=True)]),
    )


def lathe(*bands: Sequence[Point], segments: int = 28) -> Solid:
    """What turning a profile about the z axis makes.

    Each band is a run of (radius, z), upwards along the outside, that is shaded smoothly; between bands is an edge.
    """
    return join_solids(*(_band(np.array(band, dtype=float), segments) for band in bands))


def ball(radius: float, rings: int = 18, segments: int = 28) -> Solid:
    """A sphere about the origin."""
    angles = np.linspace(-math.pi / 2, math.pi / 2, rings + 1)
    return lathe([(radius * math.cos(a), radius * math.sin(a)) for a in angles], segments=segments)


def cylinder(radius: float, height: float, top: float | None = None, bevel: float = 0.03, segments: int = 28) -> Solid:
    """Standing on z = 0, with rounded rims; `top` is its radius up there, if another."""
    top = radius if top is None else top
    low, high = _draw_rim(radius, bevel), [(r, height - z) for r, z in reversed(_draw_rim(top, bevel))]
    return lathe([(0, 0), low[0]], low, [low[-1], high[0]], high, [high[-1], (0, height)], segments=segments)


def cone(radius: float, height: float, tip: float = 0.05, segments: int = 32) -> Solid:
    """Standing on z = 0, with a rounded tip."""
    slope = math.atan2(radius, height)
    angles = np.linspace(slope, math.pi / 2, 5)
    centre = height - tip
    cap = [(tip * math.cos(a), centre + tip * math.sin(a)) for a in angles]
    cap[-1] = (0.0, height)
    side = [(radius + t * (cap[0][0] - radius), t * cap[0][1]) for t in np.linspace(0, 1, 8)]
    return lathe([(0, 0), (radius, 0)], side, cap, segments=segments)


def torus(radius: float, thickness: float, segments: int = 36, sides: int = 16) -> Solid:
    """A ring that lies around the z axis; `radius` to the middle of the tube."""
    angles = np.linspace(0, 2 * math.pi, sides + 1)
    return lathe([(radius + thickness * math.cos(a), thickness * math.sin(a)) for a in angles], segments=segments)


def box(width: float, depth: float, height: float, bevel: float = 0.04, steps: int = 2) -> Solid:
    """Standing on z = 0, with rounded edges: a ball taken apart into octants, with flat faces between them."""
    quarter = np.linspace(0, math.pi / 2, steps + 1)
    turns = np.concatenate([quarter + k * math.pi / 2 for k in range(4)])
    signs = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)]).repeat(steps + 1, axis=0)
    tilts = np.concatenate([quarter - math.pi / 2, quarter])
    ups = np.array([-1, 1]).repeat(steps + 1)
    directions = [[(math.cos(b) * math.cos(a), math.cos(b) * math.sin(a), math.sin(b)) for a in turns] for b in tilts]
    normals = np.array(directions)
    core = np.array([width / 2, depth / 2, height / 2]) - bevel
    corners = np.array([[(sx, sy, up) for sx, sy in signs] for up in ups])
    points = normals * bevel + corners * core + np.array([0, 0, height / 2])
    rows, columns = points.shape[:2]
    faces = _grid(rows, columns, closed=True)
    lids = [_make_lid(0, columns, down=True), _make_lid((rows - 1) * columns, columns, down=False)]
    return Solid(points.reshape(-1, 3), normals.reshape(-1, 3), np.concatenate([faces, *lids]))


def prism(outline: Sequence[Point], depth: float, middle: Point = (0.0, 0.0), puff: float = 0.0) -> Solid:
    """An outline in the x-z plane, counter-clockwise seen from the front, given `depth` along y, centred on y = 0.

    The outline must be star-shaped about `middle`; `puff` lifts the middle of both faces, as on a faceted star.
    """
    edges = list(zip(outline, [*outline[1:], outline[0]], strict=True))
    near, far = -depth / 2, depth / 2
    solids = []
    for y, front in ((near, True), (far, False)):
        centre = (middle[0], y - puff if front else y + puff, middle[1])
        for (ax, az), (bx, bz) in edges:
            a, b = (ax, y, az), (bx, y, bz)
            solids.append(_flat([centre, a, b] if front else [centre, b, a]))
    for (ax, az), (bx, bz) in edges:
        solids.append(_flat([(ax, near, az), (ax, far, az), (bx, far, bz), (bx, near, bz)]))
    return join_solids(*solids)


def pyramid(width: float, height: float) -> Solid:
    """Four sides on a square base at z = 0."""
    h = width / 2
    base = [(-h, -h, 0.0), (h, -h, 0.0), (h, h, 0.0), (-h, h, 0.0)]
    sides = [_flat([base[k], base[(k + 1) % 4], (0.0, 0.0, height)]) for k in range(4)]
    return join_solids(_flat(base[::-1]), *sides)


def make_loft(outlines: Sequence[Sequence[Point]], heights: Sequence[float]) -> Solid:
    """A skin over horizontal outlines of equal length, counter-clockwise seen from above, flat at top and bottom."""
    rings = [np.array([(x, y, z) for x, y in outline]) for outline, z in zip(outlines, heights, strict=True)]
    sides = []
    for low, high in pairwise(rings):
        below, above = np.roll(low, -1, axis=0), np.roll(high, -1, axis=0)
        sides += [_flat([low[k], below[k], above[k], high[k]]) for k in range(len(low))]
    return join_solids(_flat(list(rings[0][::-1])), *sides, _flat(list(rings[-1])))


def _draw_rim(radius: float, bevel: float) -> list[Point]:
    return [(radius - bevel + bevel * math.sin(a), bevel - bevel * math.cos(a)) for a in np.linspace(0, math.pi / 2, 4)]


def _band(profile: Floats, segments: int) -> Solid:
    """One smooth run of a lathe; the normals are those of the profile's own curve."""
    slopes = np.gradient(profile, axis=0) if len(profile) > 2 else np.repeat(profile[1:] - profile[:1], 2, axis=0)
    if len(profile) > 3 and np.allclose(profile[0], profile[-1]):
        slopes[0] = slopes[-1] = profile[1] - profile[-2]
    outward = np.stack([slopes[:, 1], -slopes[:, 0]], axis=1)
    outward /= np.maximum(np.linalg.norm(outward, axis=1, keepdims=True), 1e-12)
    angles = np.linspace(0, 2 * math.pi, segments + 1)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def revolve(curve: Floats) -> Floats:
        flat = curve[:, None, :1] * around[None]
        return np.concatenate([flat, np.repeat(curve[:, None, 1:], len(angles), axis=1)], axis=2).reshape(-1, 3)

    return Solid(revolve(profile), revolve(outward), _grid(len(profile), segments + 1, closed=False))


def _grid(rows: int, columns: int, *, closed: bool) -> NDArray[np.int64]:
    """Triangles between neighbouring rows of points that run counter-clockwise seen from above, bottom row first."""
    faces = []
    for row in range(rows - 1):
        for column in range(columns if closed else columns - 1):
            a, b = row * columns + column, row * columns + (column + 1) % columns
            c, d = b + columns, a + columns
            faces += [(a, b, c), (a, c, d)]
    return np.array(faces, dtype=np.int64)


def _make_lid(start: int, columns: int, *, down: bool) -> NDArray[np.int64]:
    """The flat rectangle between the four corners of a box's first or last row."""
    a, b, c, d = (start + k * columns // 4 for k in range(4))
    return np.array([(c, b, a), (d, c, a)] if down else [(a, b, c), (a, c, d)], dtype=np.int64)


def _flat(corners: Sequence[Floats | tuple[float, float, float]]) -> Solid:
    """A flat convex polygon, counter-clockwise seen from its front."""
    points = np.array(corners, dtype=float)
    normal = np.cross(points[1] - points[0], points[2] - points[0])
    normal = normal / max(float(np.linalg.norm(normal)), 1e-12)
    faces = [(0, k, k + 1) for k in range(1, len(points) - 1)]
    return Solid(points, np.tile(normal, (len(points), 1)), np.array(faces, dtype=np.int64))
