"""Files of strangers: what is broken, too large or not understood is refused with its reason."""

from __future__ import annotations

import json
import math
import os
import random
import struct
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.support.glb_files import GlbFile, make_box, make_cone, make_picture, pack
from workers.toybox.glb.container import MAX_BYTES, GlbRefused, parse_glb, read_file
from workers.toybox.glb.folder import ToyFolder
from workers.toybox.glb.geometry import MAX_TRIANGLES, build_surfaces, fit_toy
from workers.toybox.world.scenes import Shape
from workers.toybox.world.surfaces import Surface


def read(data: bytes) -> tuple[tuple[Surface, ...], Shape]:
    return fit_toy(build_surfaces(parse_glb(data)))


def change(edit: Callable[[dict[str, Any]], object], file: GlbFile | None = None) -> bytes:
    """A cone, or another file, whose JSON was changed."""
    made = file or make_cone()
    edit(made.json)
    return made.to_bytes()


def set_points(points: list[tuple[float, float, float]]) -> bytes:
    file = GlbFile()
    file.add_triangles(points, range(len(points)))
    return file.to_bytes()


def chain(length: int) -> list[dict[str, Any]]:
    """Nodes each of which is in the one before; the last has the mesh."""
    return [*({"children": [k + 1]} for k in range(length - 1)), {"mesh": 0}]


def png_of(width: int, height: int) -> bytes:
    """A picture of one colour, which takes few bytes however large it is."""
    kept = BytesIO()
    Image.new("1", (width, height)).save(kept, "PNG")
    return kept.getvalue()


def box_with_image(data: bytes) -> bytes:
    file = make_box(make_picture())
    view = file.add_view(data)
    file.json["images"][0]["bufferView"] = view
    return file.to_bytes()


WHOLE = make_cone().to_bytes()
TEXTURED = make_box(make_picture()).to_bytes()


def test_whole_files_are_read() -> None:
    (cone,), shape = read(WHOLE)
    assert len(cone.faces) == 3 * 48
    assert shape == Shape(0.464, 1.3, 1.3)
    (box,), _ = read(TEXTURED)
    assert box.texture is not None
    assert box.texture.size == (64, 64)


BROKEN = [
    (b"", "does not begin with glTF"),
    (b"PK\x03\x04" + bytes(100), "does not begin with glTF; export it as .glb"),
    (b'{"asset": {"version": "2.0"}}', "does not begin with glTF"),
    (struct.pack("<III", 0x46546C67, 1, 12), "it is glTF 1; export it as glTF 2.0"),
    (WHOLE[:-1], r"it says that it has [\d,]+ bytes, and has [\d,]+; copy"),
    (WHOLE + b"more", "it says that it has"),
    (struct.pack("<III", 0x46546C67, 2, 12), "cut off where a chunk begins"),
    (struct.pack("<IIIII", 0x46546C67, 2, 20, 2**32 - 1, 0x4E4F534A), "cut off within a chunk"),
    (struct.pack("<IIIII", 0x46546C67, 2, 20, 0, 0x004E4942), "has no JSON"),
    (pack(b"{"), "its JSON is not glTF"),
    (pack(b"\xff\xfe"), "its JSON is not glTF"),
    (pack(b"[]"), "its JSON is not glTF"),
    (pack(b"[" * 100_000), "its JSON is not glTF"),
    (pack(b'{"extras":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "its JSON is not glTF"),
    (pack(b'{"nodes": [{"scale": [1, 2]}]}'), r"its JSON is not glTF \(.*length 3"),
    (pack(b'{"nodes": [{"mesh": -1}]}'), r"its JSON is not glTF \(.*>= 0"),
    (pack(b'{"nodes": [{"matrix": [1e999]}]}'), "its JSON is not glTF"),
    (pack(b" " * 8_000_001), "its JSON has 8,000,004 bytes, over 8,000,000"),
    (pack(b'{"nodes": [' + b"{}," * 20_000 + b"{}]}"), "it has 20,001 nodes, over 20,000"),
    (pack(b"{}"), "it has no mesh in its scene"),
]


@pytest.mark.parametrize(("data", "reason"), BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_file_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(GlbRefused, match=reason):
        read(data)


EDITS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda j: j["buffers"][0].update(uri="../../etc/passwd"), "links to '../../etc/passwd' outside the file"),
    (lambda j: j["buffers"][0].update(uri="http://example.org/a.bin"), "links to 'http://example.org/a.bin'"),
    (lambda j: j["buffers"][0].update(uri="data:;base64,!!!"), "is no Base64"),
    (lambda j: j["buffers"][0].update(uri="data:;base64,QUJD"), r"buffers\[0\] says [\d,]+ bytes and has 3"),
    (lambda j: j["buffers"][0].update(byteLength=10**9), r"buffers\[0\] says 1,000,000,000 bytes"),
    (lambda j: j["buffers"].append({"byteLength": 4}), r"there are no bytes for buffers\[1\]"),
    (lambda j: j.update(images=[{"uri": "wood.png"}]), "links to 'wood.png' outside the file"),
    (lambda j: j.update(images=[{"uri": "file:///etc/passwd"}]), "links to 'file:///etc/passwd'"),
    (lambda j: j.update(extensionsRequired=["KHR_draco_mesh_compression"]), r"\(KHR_draco_mesh_compression\)"),
    (lambda j: j.update(extensionsRequired=["x" * 500] * 9), "needs extensions that are not known here"),
    (lambda j: j["accessors"][0].update(sparse={"count": 1}), r"accessors\[0\] is sparse; export it without"),
    (lambda j: j["accessors"][0].pop("bufferView"), r"accessors\[0\] has no bytes; export it uncompressed"),
    (lambda j: j["accessors"][0].update(bufferView=99), r"names bufferViews\[99\] and has 6"),
    (lambda j: j["accessors"][0].update(byteOffset=10**30), "ends after its bytes|its JSON is not glTF"),
    (lambda j: j["accessors"][0].update(byteOffset=4), r"accessors\[0\] ends after its bytes"),
    (lambda j: j["accessors"][0].update(count=49), r"accessors\[0\] ends after its bytes"),
    (lambda j: j["accessors"][0].update(count=0), "its JSON is not glTF"),
    (lambda j: j["accessors"][0].update(type="VEC2"), "of a kind that does not belong there"),
    (lambda j: j["accessors"][0].update(type="MAT4"), "of a kind that does not belong there"),
    (lambda j: j["accessors"][0].update(componentType=5123), "of a kind that does not belong there"),
    (lambda j: j["accessors"][0].update(componentType=1), "of a kind that does not belong there"),
    (lambda j: j["accessors"][1].update(componentType=5126), "is no list of indices"),
    (lambda j: j["accessors"][1].update(type="VEC3"), "is no list of indices"),
    (lambda j: j["accessors"][1].update(count=143), "143 indices, which are no triangles"),
    (lambda j: j["bufferViews"][0].update(byteOffset=10**9), r"bufferViews\[0\] ends after its buffer"),
    (lambda j: j["bufferViews"][0].update(byteStride=4), r"accessors\[0\] has rows that overlap"),
    (lambda j: j["bufferViews"][0].update(buffer=7), r"names buffers\[7\] and has 1"),
    (lambda j: j["nodes"][0].update(mesh=3), r"names meshes\[3\] and has 1"),
    (lambda j: j["nodes"][0].update(skin=0), "it has a skeleton; apply the pose"),
    (lambda j: j["nodes"][0].update(children=[0]), r"nodes\[0\] has two parents, or is its own"),
    (lambda j: j.update(nodes=[{"children": [1]}, {"children": [0]}]), "has two parents, or is its own"),
    (lambda j: j.update(nodes=[{"children": [1, 1]}, {"mesh": 0}]), "has two parents, or is its own"),
    (lambda j: j["nodes"][0].update(children=[9]), r"names nodes\[9\] and has 1"),
    (lambda j: j.update(nodes=chain(65)), "its nodes are over 64 deep"),
    (lambda j: j.update(nodes=chain(15_000)), "its nodes are over 64 deep"),
    (lambda j: j.update(scene=4), r"names scenes\[4\] and has 1"),
    (lambda j: j["scenes"][0].update(nodes=[]), "it has no mesh in its scene"),
    (lambda j: j["nodes"][0].update(scale=[0, 0, 0]), "its triangles have no size"),
    (lambda j: j["nodes"][0].update(scale=[0, 1, 0]), "its triangles have no size"),
    (lambda j: j["nodes"][0].update(scale=[1e308, 1e308, 1e308], translation=[1e308, 0, 0]), "or an endless one"),
    (lambda j: j["nodes"][0].update(matrix=[1e200] * 16), "no size, or an endless one"),
    (lambda j: j["meshes"][0]["primitives"][0].update(mode=0), "points, lines, strips or fans"),
    (lambda j: j["meshes"][0]["primitives"][0].update(attributes={}), "has no positions"),
    (lambda j: j["meshes"][0]["primitives"][0].update(material=44), r"names materials\[44\] and has 3"),
    (lambda j: j["meshes"][0]["primitives"][0]["attributes"].update(NORMAL=1), "rows for 48 points"),
    (lambda j: j["meshes"][0]["primitives"][0]["attributes"].update(COLOR_0=3), "rows for 48 points"),
    (lambda j: j["meshes"][0]["primitives"].extend(j["meshes"][0]["primitives"] * 400), "1,000 parts"),
]


@pytest.mark.parametrize(("edit", "reason"), EDITS, ids=range(len(EDITS)))
def test_what_does_not_fit_together_is_refused(edit: Callable[[dict[str, Any]], object], reason: str) -> None:
    file = make_cone()
    file.json["buffers"] = [{"byteLength": len(file.binary)}]
    with pytest.raises(GlbRefused, match=reason):
        read(change(edit, file))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_points_that_are_no_numbers_are_refused(number: float) -> None:
    with pytest.raises(GlbRefused, match=r"accessors\[0\] holds NaN or infinite numbers; repair the mesh"):
        read(set_points([(0, 0, 0), (1, 0, 0), (0, number, 0)]))


def test_indices_beyond_the_points_are_refused() -> None:
    file = GlbFile()
    file.add_triangles([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [0, 1, 3])
    with pytest.raises(GlbRefused, match=r"accessors\[1\] names point 3 of 3"):
        read(file.to_bytes())


def test_triangles_without_an_area_are_refused() -> None:
    for points in ([(1.0, 1.0, 1.0)] * 3, [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (2.0, 0.0, 0.0)]):
        with pytest.raises(GlbRefused, match="its triangles have no size"):
            read(set_points(points))


def test_a_flat_thing_is_a_toy_too() -> None:
    _, lying = read(set_points([(0, 0, 0), (1, 0, 0), (0, 0, 1)]))
    _, standing = read(set_points([(0, 0, 0), (1e-6, 0, 0), (0, 1e-6, 0)]))
    assert lying.height == 0.05
    assert standing.height == pytest.approx(1.3)


def test_nodes_move_turn_and_scale_what_is_in_them() -> None:
    def tilt(json: dict[str, Any]) -> None:
        half = math.sqrt(0.5)
        json["nodes"] = [{"rotation": [0, 0, half, half], "scale": [2, 2, 2], "children": [1]}, {"mesh": 0}]

    (tilted,), shape = read(change(tilt))
    extent = np.ptp(tilted.points, axis=0)
    assert extent[0] == pytest.approx(1.4 * extent[2], rel=0.01)
    (by_matrix,), same = read(
        change(lambda j: j["nodes"][0].update(matrix=[0, 2, 0, 0, -2, 0, 0, 0, 0, 0, 2, 0, 5, 5, 5, 1]))
    )
    assert same == shape
    assert by_matrix.points == pytest.approx(tilted.points, abs=1e-6)
    (mirrored,), _ = read(change(lambda j: j["nodes"][0].update(scale=[-1, 1, 1])))
    outward = mirrored.points - mirrored.points.mean(axis=0)
    assert ((outward * mirrored.normals).sum(axis=1) > 0).mean() > 0.9


def test_normals_and_colours_of_vertices_are_read() -> None:
    file = GlbFile()
    more = {
        "NORMAL": file.add_array([(0, 0, 2)] * 3, "VEC3"),
        "COLOR_0": file.add_array([(255, 0, 0, 255), (0, 255, 0, 255), (0, 0, 255, 255)], "VEC4", 5121),
    }
    file.add_triangles([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [0, 1, 2], {"baseColorFactor": [0.5, 1, 1, 1]}, **more)
    (surface,), _ = read(file.to_bytes())
    assert surface.normals == pytest.approx(np.tile([0, -1, 0], (3, 1)))
    assert surface.colours == pytest.approx(np.diag([0.5 ** (1 / 2.2), 1, 1]))


def test_data_may_lie_in_the_json() -> None:
    import base64

    file = make_box(make_picture())
    file.json["buffers"] = [
        {"byteLength": len(file.binary), "uri": "data:a/b;base64," + base64.b64encode(file.binary).decode()}
    ]
    (surface,), _ = read(pack(json.dumps(file.json).encode()))
    assert surface.texture is not None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no image", r"images\[0\] cannot be drawn: it is no JPEG, PNG"),
        (png_of(8000, 8000), r"images\[0\] cannot be drawn: it is 8000 x 8000 pixels, over 50,000,000"),
        (png_of(6000, 100), "over 50 times as long as wide"),
        (png_of(64, 64)[:-30], "cannot be drawn: it is damaged"),
    ],
)
def test_images_have_the_bounds_of_those_of_datasets(data: bytes, reason: str) -> None:
    with pytest.raises(GlbRefused, match=reason):
        read(box_with_image(data))


def test_a_large_image_is_reduced() -> None:
    (surface,), _ = read(box_with_image(png_of(4000, 3000)))
    assert surface.texture is not None
    assert surface.texture.size == (512, 512)


def test_too_many_triangles_are_counted_before_they_are_read() -> None:
    file = GlbFile()
    file.add_triangles([(0, 0, 0), (1, 0, 0), (0, 1, 0)], np.zeros(3 * (MAX_TRIANGLES // 2 + 1), int))
    file.json["nodes"] = [{"children": [1, 2]}, {"mesh": 0}, {"mesh": 0}]
    with pytest.raises(GlbRefused, match="over 200,000 triangles, 600,000 vertices"):
        read(file.to_bytes())
    with pytest.raises(GlbRefused, match="over 200,000 triangles"):
        read(change(lambda j: j["accessors"][0].update(count=10**15)))


def test_a_file_changed_anywhere_is_read_or_refused() -> None:
    rng = random.Random(45)
    refused = 0
    for whole in (WHOLE, TEXTURED):
        for _ in range(400):
            data = bytearray(whole)
            for _ in range(rng.choice((1, 3, 20))):
                data[rng.randrange(12, len(data))] = rng.randrange(256)
            try:
                surfaces, shape = read(bytes(data))
            except GlbRefused:
                refused += 1
                continue
            assert all(np.isfinite(each.points).all() for each in surfaces)
            assert 0.05 <= shape.radius <= 0.7
    assert 100 < refused < 800


# --- files on the disk ------------------------------------------------------------------------------


def test_a_file_of_500_mb_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "anvil.glb"
    with path.open("wb") as file:
        file.truncate(500_000_000)
    before = _count_read_bytes()
    with pytest.raises(GlbRefused, match="it has 500,000,000 bytes, over 50,000,000; export it with fewer"):
        read_file(path)
    assert _count_read_bytes() - before < MAX_BYTES
    make_cone().write(tmp_path / "beacon.glb")
    found = ToyFolder(str(tmp_path)).read()
    assert list(found.toys) == ["beacon"]
    assert found.problems[0].startswith("'anvil.glb': it has 500,000,000 bytes")


def _count_read_bytes() -> int:
    """Bytes that this process has read by calls of the kernel."""
    return int(Path("/proc/self/io").read_text().partition("rchar: ")[2].split()[0])


def test_what_is_no_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "anvil.glb")
    (tmp_path / "beacon.glb").mkdir()
    (tmp_path / "candle.glb").symlink_to(tmp_path / "lost.glb")
    (tmp_path / "drill.glb").symlink_to("/dev/zero")
    make_cone().write(tmp_path / "easel.glb")
    found = ToyFolder(str(tmp_path)).read()
    assert list(found.toys) == ["easel"]
    reasons = [each.partition(": ")[2] for each in found.problems]
    assert reasons[0] == "it is no file; put a .glb file there."
    assert reasons[2] == "it cannot be read (No such file or directory); remove it or give it a target."
    assert len(reasons) == 4
