"""Decode the images of a `.glb` file, with the limits of dataset images, and reduce them."""

from __future__ import annotations

from io import BytesIO

from PIL import Image

from workers.errors import BrokenImage
from workers.lab.decoding import decode_file
from workers.toybox.glb.container import Glb, GlbRefused, TextureUse, decode_uri, get_row

MAX_TEXTURES = 16
"""Maximum number of images of a file that are drawn."""
_MAX_SIDE = 512


class Textures:
    """Decodes each image of a file once."""

    def __init__(self, glb: Glb) -> None:
        self._glb = glb
        self._known: dict[int, Image.Image] = {}

    def load(self, use: TextureUse) -> Image.Image:
        """Return the image of a texture: RGB, sides powers of two up to 512. Raises GlbRefused."""
        at = get_row(self._glb.document.textures, use.index, "textures").source
        if at is None:
            raise GlbRefused(f"textures[{use.index}] has no PNG or JPEG image; export it with one")
        # Limited by number here, and by `decode_file` in size: each decoded image stays in memory
        if at not in self._known:
            if len(self._known) == MAX_TEXTURES:
                raise GlbRefused(f"it has over {MAX_TEXTURES} images of base colours; join them")
            self._known[at] = self._decode(at)
        return self._known[at]

    def _decode(self, at: int) -> Image.Image:
        row = get_row(self._glb.document.images, at, "images")
        if row.uri is not None:
            data = decode_uri(row.uri)
        elif row.buffer_view is not None:
            data = bytes(self._glb.view(row.buffer_view))
        else:
            raise GlbRefused(f"images[{at}] has no bytes; export it with everything inside")
        try:
            image = decode_file(BytesIO(data))
        except BrokenImage as error:
            raise GlbRefused(f"images[{at}] cannot be drawn: {error}") from None
        width, height = (_round_side(side) for side in image.size)
        return image.resize((width, height), Image.Resampling.LANCZOS)


def _round_side(side: int) -> int:
    """Return the largest power of two up to a side, as the renderer needs."""
    return min(_MAX_SIDE, 1 << (side.bit_length() - 1))
