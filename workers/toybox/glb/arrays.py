"""Read tables of numbers in a `.glb` file, each within the bounds of its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.toybox.glb.container import Glb, GlbRefused, get_row

Floats = NDArray[np.float64]

_FLOAT = 5126
# Numbers of OpenGL's component types, as glTF uses them
_NUMBERS: Mapping[int, str] = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", _FLOAT: "<f4"}
_INDICES = (5121, 5123, 5125)
_SHARES = (5121, 5123)
"""Integer types that may represent shares from 0 to 1."""
_WIDTHS: Mapping[str, int] = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}


def read_vectors(glb: Glb, at: int, types: tuple[str, ...], count: int, *, shares: bool = False) -> Floats:
    """Return a table of `count` vectors, (count, width), all finite. With `shares`, integers may represent 0 to 1.

    Raises GlbRefused.
    """
    row = get_row(glb.document.accessors, at, "accessors")
    if row.count != count:
        raise GlbRefused(f"accessors[{at}] has {row.count:,} rows for {count:,} points; export it again")
    # Only normalised integers mean shares; others would be counts
    is_share = shares and row.normalized and row.component_type in _SHARES
    if row.type not in types or not (row.component_type == _FLOAT or is_share):
        raise GlbRefused(f"accessors[{at}] is of a kind that does not belong there; export it with 32-bit floats")
    table = _read_table(glb, at).astype(np.float64)
    if is_share:
        # The largest value of the type means 1
        table /= 2 ** (8 if row.component_type == _SHARES[0] else 16) - 1
    if not np.isfinite(table).all():
        raise GlbRefused(f"accessors[{at}] holds NaN or infinite numbers; repair the mesh and export it again")
    return table


def read_indices(glb: Glb, at: int, points: int) -> NDArray[np.int64]:
    """Return triangles as indices of points, (count, 3). Raises GlbRefused."""
    row = get_row(glb.document.accessors, at, "accessors")
    if row.type != "SCALAR" or row.component_type not in _INDICES:
        raise GlbRefused(f"accessors[{at}] is no list of indices; export it again")
    indices = _read_table(glb, at).astype(np.int64).ravel()
    if len(indices) % 3:
        raise GlbRefused(f"accessors[{at}] has {len(indices):,} indices, which are no triangles; export it again")
    # The type is unsigned, so no index is negative
    if int(indices.max()) >= points:
        raise GlbRefused(f"accessors[{at}] names point {indices.max():,} of {points:,}; export it again")
    return indices.reshape(-1, 3)


def count_rows(glb: Glb, at: int) -> int:
    """Return the number of rows that a table declares. Raises GlbRefused."""
    return get_row(glb.document.accessors, at, "accessors").count


def _read_table(glb: Glb, at: int) -> NDArray[Any]:
    """Return the rows of a table as stored in the file, (count, width)."""
    row = glb.document.accessors[at]
    if row.sparse is not None:
        raise GlbRefused(f"accessors[{at}] is sparse; export it without sparse accessors")
    if row.buffer_view is None:
        raise GlbRefused(f"accessors[{at}] has no bytes; export it uncompressed")
    number, width = np.dtype(_NUMBERS[row.component_type]), _WIDTHS[row.type]
    view = glb.view(row.buffer_view)
    step = glb.document.buffer_views[row.buffer_view].byte_stride or width * number.itemsize
    if step < width * number.itemsize:
        raise GlbRefused(f"accessors[{at}] has rows that overlap; export it again")
    if row.byte_offset + (row.count - 1) * step + width * number.itemsize > len(view):
        raise GlbRefused(f"accessors[{at}] ends after its bytes; copy or export the file again")
    # A view with strides on the file's bytes; the copy frees it of them
    return np.ndarray((row.count, width), number, view, row.byte_offset, (step, number.itemsize)).copy()
