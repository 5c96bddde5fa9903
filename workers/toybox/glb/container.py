"""Split a `.glb` file into its bytes and its JSON, which is checked against the supported part of glTF 2.0.

Files are untrusted. Nothing outside the file is read. See https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

MAX_BYTES = 50_000_000
"""Maximum size of a file in bytes."""
_MAX_JSON = 8_000_000
_MAX_ROWS = 20_000
"""Maximum number of nodes, accessors and so on in a file."""
# Four-byte words that begin the file and its chunks: "glTF", "JSON" and "BIN\0", little-endian
_MAGIC, _JSON, _BINARY = 0x46546C67, 0x4E4F534A, 0x004E4942

Index = Annotated[int, msgspec.Meta(ge=0)]
Matrix = Annotated[list[float], msgspec.Meta(min_length=16, max_length=16)]
Row = TypeVar("Row")


class GlbRefused(Exception):
    """Raised when a file cannot be drawn: the reason, and what to do about it."""


class _Row(msgspec.Struct, rename="camel"):
    """A row of glTF's JSON. Fields that are not named here are ignored."""


class Accessor(_Row):
    """A table of numbers in a buffer view."""

    component_type: int
    count: Annotated[int, msgspec.Meta(ge=1)]
    type: str
    buffer_view: Index | None = None
    byte_offset: Index = 0
    normalized: bool = False
    sparse: Any = None


class BufferView(_Row):
    """A range of bytes in a buffer."""

    buffer: Index
    byte_length: Annotated[int, msgspec.Meta(ge=1)]
    byte_offset: Index = 0
    byte_stride: Annotated[int, msgspec.Meta(ge=4, le=252)] | None = None


class Buffer(_Row):
    """Bytes, stored in the file or as Base64 in its JSON."""

    byte_length: Annotated[int, msgspec.Meta(ge=1)]
    uri: str | None = None


class ImageRow(_Row):
    """The location of an image."""

    uri: str | None = None
    buffer_view: Index | None = None


class TextureRow(_Row):
    """An image as a texture."""

    source: Index | None = None


class TextureUse(_Row):
    """The texture of a material, and which texture coordinates it uses."""

    index: Index
    tex_coord: Index = 0


class BaseColour(_Row):
    """The part of a material that is drawn."""

    base_color_factor: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    base_color_texture: TextureUse | None = None


class MaterialRow(_Row):
    """A material."""

    pbr_metallic_roughness: BaseColour = msgspec.field(default_factory=BaseColour)


class Primitive(_Row):
    """Triangles of one material."""

    attributes: dict[str, Index]
    indices: Index | None = None
    material: Index | None = None
    # 4 is TRIANGLES, the default of glTF
    mode: int = 4


class MeshRow(_Row):
    """Primitives that belong together."""

    primitives: list[Primitive]


class NodeRow(_Row):
    """A node of the tree with the mesh that is drawn there."""

    children: list[Index] = []
    mesh: Index | None = None
    skin: Index | None = None
    matrix: Matrix | None = None
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


class SceneRow(_Row):
    """The roots of a tree."""

    nodes: list[Index] = []


class GlbJson(_Row):
    """The JSON of a file."""

    scene: Index = 0
    scenes: list[SceneRow] = []
    nodes: list[NodeRow] = []
    meshes: list[MeshRow] = []
    accessors: list[Accessor] = []
    buffer_views: list[BufferView] = []
    buffers: list[Buffer] = []
    materials: list[MaterialRow] = []
    textures: list[TextureRow] = []
    images: list[ImageRow] = []
    extensions_required: list[str] = []


@dataclass(frozen=True)
class Glb:
    """A file: its JSON, and the bytes of each buffer."""

    document: GlbJson
    buffers: tuple[memoryview, ...]

    def view(self, at: int) -> memoryview:
        """Return the bytes of a buffer view. Raises GlbRefused."""
        row = get_row(self.document.buffer_views, at, "bufferViews")
        whole = get_row(self.buffers, row.buffer, "buffers")
        # `byte_length` comes from the file: a slice past the end would silently be shorter
        if row.byte_offset + row.byte_length > len(whole):
            raise GlbRefused(f"bufferViews[{at}] ends after its buffer; export the file again")
        return whole[row.byte_offset : row.byte_offset + row.byte_length]


def read_file(path: Path) -> bytes:
    """Return the bytes of a file. One larger than `MAX_BYTES` is not read. Raises GlbRefused."""
    try:
        # A pipe of this name must not block the worker
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise GlbRefused("it is no file; put a .glb file there")
            if about.st_size > MAX_BYTES:
                told = f"it has {about.st_size:,} bytes, over {MAX_BYTES:,}"
                raise GlbRefused(f"{told}; export it with fewer triangles or smaller images")
            # The file may grow after its size was read
            return file.read(MAX_BYTES + 1)[:MAX_BYTES]
    except OSError as error:
        raise GlbRefused(f"it cannot be read ({error.strerror}); give the worker's user the right") from None


def parse_glb(data: bytes) -> Glb:
    """Split a file into its parts and check them. Raises GlbRefused."""
    chunks = _cut_chunks(data)
    if len(chunks[0]) > _MAX_JSON:
        raise GlbRefused(f"its JSON has {len(chunks[0]):,} bytes, over {_MAX_JSON:,}; put its data in the binary chunk")
    try:
        document = msgspec.json.decode(chunks[0], type=GlbJson)
    # Deeply nested JSON ends in a RecursionError
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise GlbRefused(f"its JSON is not glTF ({error}); export it again") from None
    # A limit for every kind of row, so that later loops over them stay short
    for name in document.__struct_fields__:
        rows = getattr(document, name)
        if isinstance(rows, list) and len(rows) > _MAX_ROWS:
            raise GlbRefused(f"it has {len(rows):,} {name}, over {_MAX_ROWS:,}; join what belongs together")
    # A required extension changes what the data mean, such as compressed meshes
    if document.extensions_required:
        named = ", ".join(each[:60] for each in document.extensions_required[:5])
        raise GlbRefused(f"it needs extensions that are not known here ({named}); export it without, uncompressed")
    _refuse_links(document)
    return Glb(document, tuple(_find_bytes(row, at, chunks) for at, row in enumerate(document.buffers)))


def get_row(rows: Sequence[Row], at: int, what: str) -> Row:
    """Return a row by its number. Raises GlbRefused if it does not exist."""
    if at >= len(rows):
        raise GlbRefused(f"it names {what}[{at}] and has {len(rows)} of them; export it again")
    return rows[at]


def decode_uri(uri: str) -> bytes:
    """Return the bytes of a `data:` URI in Base64. Raises GlbRefused."""
    try:
        return base64.b64decode(uri.partition(",")[2], validate=True)
    except (binascii.Error, ValueError):
        raise GlbRefused("a data: URI in it is no Base64; export it again") from None


def _cut_chunks(data: bytes) -> list[memoryview]:
    """Return the JSON and, if present, the binary chunk."""
    # 1. The header: magic, version, length
    if len(data) < 12 or struct.unpack_from("<I", data)[0] != _MAGIC:
        raise GlbRefused("it is no glTF in binary form: it does not begin with glTF; export it as .glb")
    _, version, length = struct.unpack_from("<III", data)
    if version != 2:
        raise GlbRefused(f"it is glTF {version}; export it as glTF 2.0")
    if length != len(data):
        raise GlbRefused(f"it says that it has {length:,} bytes, and has {len(data):,}; copy or export it again")
    # 2. The chunks, from byte 12. JSON comes first; the binary chunk may be missing
    whole, at = memoryview(data), 12
    chunks: list[memoryview] = []
    for kind in (_JSON, _BINARY):
        if at == len(data) and chunks:
            break
        if at + 8 > len(data):
            raise GlbRefused("it is cut off where a chunk begins; copy or export it again")
        size, found = struct.unpack_from("<II", data, at)
        if found != kind and kind == _BINARY:
            break  # chunks of extensions
        if found != kind or at + 8 + size > len(data):
            raise GlbRefused("it is cut off within a chunk, or has no JSON; copy or export it again")
        chunks.append(whole[at + 8 : at + 8 + size])
        at += 8 + size
    return chunks


def _refuse_links(document: GlbJson) -> None:
    """Raise GlbRefused for any link, even one that would not be drawn: nothing outside the file is read."""
    rows: list[Buffer | ImageRow] = [*document.buffers, *document.images]
    for row in rows:
        if row.uri is not None and not row.uri.startswith("data:"):
            raise GlbRefused(f"it links to {row.uri[:60]!r} outside the file; export it with everything inside")


def _find_bytes(row: Buffer, at: int, chunks: list[memoryview]) -> memoryview:
    if row.uri is not None:
        found = memoryview(decode_uri(row.uri))
    # Only buffers[0] may take its bytes from the binary chunk
    elif at or len(chunks) < 2:
        raise GlbRefused(f"there are no bytes for buffers[{at}]; export it again")
    else:
        found = chunks[1]
    if row.byte_length > len(found):
        raise GlbRefused(f"buffers[{at}] says {row.byte_length:,} bytes and has {len(found):,}; export it again")
    # The binary chunk is padded to four bytes, so it may be longer
    return found[: row.byte_length]
