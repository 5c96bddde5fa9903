"""What a script shows with `tools.display`, sorted into images and words in the order given. Used by `Tools`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from PIL import Image

from workers.errors import ToolMisuse
from workers.lab import arguments
from workers.lab.imaging import image_in
from workers.lab.memory import Kept, look_up
from workers.protocols import ImageMemory


@dataclass(frozen=True)
class Shown:
    """An image, with the activation that came with it in an (activation, image) pair."""

    image: Kept
    activation: float | None = None


def pieces(value: Any, memory: ImageMemory) -> Iterator[str | Shown]:
    """Texts and images in lists nested as they may be; anything else becomes text."""
    if _is_image(value):
        yield Shown(look_up(memory, value, "an image"))
    elif isinstance(value, list | tuple):
        if len(value) == 2 and not isinstance(value[0], str | list | tuple | Image.Image) and _is_image(value[1]):
            activation = arguments.numbers([value[0]], "the activation beside an image")[0]
            yield Shown(look_up(memory, value[1], "an image"), activation)
        else:
            for each in value:
                yield from pieces(each, memory)
    else:
        yield str(value)


def groups(parts: Iterable[str | Shown]) -> list[tuple[list[Shown], str]]:
    """Images, then the words that follow them, again and again. Raises ToolMisuse for too many images at once."""
    found: list[tuple[list[Shown], list[str]]] = []
    for part in parts:
        if not found or (isinstance(part, Shown) and found[-1][1]):
            found.append(([], []))
        images, words = found[-1]
        images.append(part) if isinstance(part, Shown) else words.append(part)
    count = sum(len(images) for images, _ in found)
    if count > arguments.MOST_ITEMS:
        raise ToolMisuse(f"{count} images came; one call shows {arguments.MOST_ITEMS} at most. Call several times.")
    return [(images, _joined(words)) for images, words in found]


def _joined(words: list[str]) -> str:
    """A line for each text; letters alone come from a text that was unpacked, and make one line."""
    return ("" if all(len(word) == 1 for word in words) else "\n").join(words)


def _is_image(value: Any) -> bool:
    return isinstance(value, Image.Image) or (isinstance(value, str) and image_in(value) is not None)
