"""Small `.glb` files: a traffic cone, a box with a picture on it, and files of any JSON, whole or broken."""

from __future__ import annotations

import json
import math
import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ORANGE, STRIPE = (1.0, 0.15, 0.01, 1.0), (0.9, 0.9, 0.9, 1.0)
"""Colours of the cone, linear as glTF has them."""


class GlbFile:
    """Collects the JSON and the bytes of a file."""

    def __init__(self) -> None:
        self.binary = b""
        self.json: dict[str, Any] = {
            "asset": {"version": "2.0"},
            "scenes": [{"nodes": [0]}],
            "nodes": [{"mesh": 0}],
            "meshes": [{"primitives": []}],
            "materials": [],
            "accessors": [],
            "bufferViews": [],
        }

    def add_view(self, data: bytes) -> int:
        """Bytes as a view; its number."""
        self.json["bufferViews"].append({"buffer": 0, "byteOffset": len(self.binary), "byteLength": len(data)})
        self.binary += data + b"\0" * (-len(data) % 4)
        return len(self.json["bufferViews"]) - 1

    def add_array(self, rows: Any, kind: str, number: int = 5126) -> int:
        """A table as an accessor; its number."""
        table = np.asarray(rows, {5126: "<f4", 5125: "<u4", 5121: "<u1"}[number])
        view = self.add_view(table.tobytes())
        row = {"bufferView": view, "componentType": number, "count": len(table), "type": kind}
        self.json["accessors"].append(row | ({"normalized": True} if number == 5121 else {}))
        return len(self.json["accessors"]) - 1

    def add_triangles(self, points: Any, faces: Any, material: dict[str, Any] | None = None, **more: int) -> None:
        """A primitive of the one mesh; `more` are further attributes."""
        attributes = {"POSITION": self.add_array(points, "VEC3"), **more}
        indices = self.add_array(np.ravel(faces), "SCALAR", 5125)
        row: dict[str, Any] = {"attributes": attributes, "indices": indices}
        if material is not None:
            row["material"] = len(self.json["materials"])
            self.json["materials"].append({"pbrMetallicRoughness": material})
        self.json["meshes"][0]["primitives"].append(row)

    def add_picture(self, image: Image.Image) -> int:
        """An image as a texture; its number."""
        kept = BytesIO()
        image.save(kept, "PNG")
        rows = self.json.setdefault("images", [])
        rows.append({"bufferView": self.add_view(kept.getvalue()), "mimeType": "image/png"})
        self.json.setdefault("textures", []).append({"source": len(rows) - 1})
        return len(rows) - 1

    def to_bytes(self) -> bytes:
        buffers = [{"byteLength": len(self.binary)}] if self.binary else []
        return pack(json.dumps({"buffers": buffers} | self.json).encode(), self.binary)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.to_bytes())
        return path


def pack(text: bytes, binary: bytes = b"") -> bytes:
    """A file of this JSON and these bytes."""
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    if binary:
        chunks += struct.pack("<II", len(binary), 0x004E4942) + binary
    return struct.pack("<III", 0x46546C67, 2, 12 + len(chunks)) + chunks


def make_cone(segments: int = 24) -> GlbFile:
    """An orange cone with a pale stripe, 70 cm high: y is up, as in glTF."""
    file = GlbFile()
    for low, high, colour in ((0.0, 0.3, ORANGE), (0.3, 0.5, STRIPE), (0.5, 0.7, ORANGE)):
        rings = []
        for y in (low, high):
            radius = 0.25 * (1 - y / 0.75)
            turns = [2 * math.pi * k / segments for k in range(segments)]
            rings.append([(radius * math.cos(turn), y, radius * math.sin(turn)) for turn in turns])
        faces = []
        for k in range(segments):
            a, b = k, (k + 1) % segments
            faces += [(a, a + segments, b), (b, a + segments, b + segments)]
        file.add_triangles(rings[0] + rings[1], faces, {"baseColorFactor": colour})
    return file


def make_box(picture: Image.Image | None = None) -> GlbFile:
    """A box of 2 x 1 x 1 m far from the origin; the picture is on each side, upright."""
    file = GlbFile()
    points, places, faces = [], [], []
    for axis in range(3):
        for side in (-0.5, 0.5):
            start = len(points)
            for u, v in ((0, 0), (1, 0), (1, 1), (0, 1)):
                point = [0.0, 0.0, 0.0]
                point[axis] = side
                across, up = [(2, 1), (0, 2), (0, 1)][axis]
                point[across], point[up] = u - 0.5, 0.5 - v
                points.append((2 * point[0] + 100, point[1] + 7, point[2] - 30))
                places.append((u, v))
            # Counter-clockwise seen from outside, as glTF has it
            order = (0, 1, 2, 3) if (side > 0) == (axis < 2) else (3, 2, 1, 0)
            a, b, c, d = (start + k for k in order)
            faces += [(a, b, c), (a, c, d)]
    more, material = {}, {"baseColorFactor": [0.2, 0.5, 0.2, 1.0]}
    if picture is not None:
        more = {"TEXCOORD_0": file.add_array(places, "VEC2")}
        material = {"baseColorTexture": {"index": file.add_picture(picture)}}
    file.add_triangles(points, faces, material, **more)
    return file


def make_picture() -> Image.Image:
    """Red above, green below, and a white corner at the upper left."""
    image = Image.new("RGB", (96, 96), (220, 30, 30))
    image.paste((30, 160, 40), (0, 48, 96, 96))
    image.paste((250, 250, 250), (0, 0, 32, 32))
    return image
