"""What a script shows with `tools.display`, sorted into images and words in the order given. Used by `Tools`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from workers.errors import ToolMisuse
from workers.lab import arguments
from workers.lab.imaging import image_in
from workers.lab.memory import Kept, look_up, texts
from workers.protocols import ImageMemory


@dataclass(frozen=True)
class Shown:
    """An image, with the activation that came with it in an (activation, image) pair."""

    image: Kept
    activation: float | None = None


def pieces(things: Sequence[Any], memory: ImageMemory) -> Iterator[str | Shown]:
    """Texts and images in order, in lists nested as they may be; anything else, lists of numbers too, becomes text."""
    if _is_pair(things):
        activation = arguments.numbers([things[0]], "the activation beside an image")[0]
        yield Shown(look_up(memory, things[1], "an image"), activation)
        return
    for each in things:
        if _is_image(each):
            yield Shown(look_up(memory, each, "an image"))
        elif isinstance(each, list | tuple) and not _is_plain(each):
            yield from pieces(each, memory)
        else:
            yield str(each)


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


def _is_pair(things: Sequence[Any]) -> bool:
    """Whether they are an activation and its image."""
    return (
        len(things) == 2 and _is_plain(things[0]) and not isinstance(things[0], list | tuple) and _is_image(things[1])
    )


def _is_plain(value: Any) -> bool:
    """Whether it holds neither text nor image: a list of numbers is shown as one."""
    if isinstance(value, list | tuple):
        return all(_is_plain(each) for each in value)
    return not isinstance(value, str | Image.Image)


def _is_image(value: Any) -> bool:
    if isinstance(value, str):
        return texts.key(value) is not None or image_in(value) is not None
    return isinstance(value, Image.Image)
