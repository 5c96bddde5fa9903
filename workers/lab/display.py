"""Sort what a script shows with `tools.display` into images and texts, in the order given. Used by `Tools`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from PIL import Image

from workers.errors import ToolMisuse
from workers.lab import arguments
from workers.lab.experiment_log import LoggedImage
from workers.lab.imaging import image_from_text
from workers.lab.memory import image_texts, is_made, look_up
from workers.protocols import ImageMemory, Progress, no_progress

MAX_TITLE = 200
"""Maximum characters of a line that can be the title of an image."""


def flatten(
    things: Sequence[Any], memory: ImageMemory, progress: Progress = no_progress
) -> Iterator[str | LoggedImage]:
    """Return texts and images in order, from lists of any depth. Anything else, such as a list of numbers, becomes
    text."""
    # A pair (activation, image) is what `dataset_exemplars` gives to scripts.
    lone = len(things) == 2 and not isinstance(things[0], list | tuple)
    if lone and _is_plain(things[0]) and _is_image(things[1]):  # an activation and its image
        image = look_up(memory, things[1], "an image")
        if is_made(image):  # a refused image has none
            claimed = arguments.check_numbers([things[0]], "the activation beside an image")[0]
            yield LoggedImage(image, claimed)
        else:
            yield LoggedImage(image)
        return
    for at, each in enumerate(things):
        progress("Reading images", at, len(things))
        if _is_image(each):
            yield LoggedImage(look_up(memory, each, "an image"))
        elif isinstance(each, list | tuple) and not _is_plain(each):
            yield from flatten(each, memory, progress)
        else:
            yield str(each)


def group_with_texts(parts: Iterable[str | LoggedImage]) -> list[tuple[list[LoggedImage], str]]:
    """Group images with the texts that follow them. Raises ToolMisuse for too many images at once.

    A line beside a single image is its title: the line after it or, if every image has one before it, that line.
    """
    found: list[tuple[list[LoggedImage], list[str]]] = []
    for part in _drop_captions(_take_parts(parts)):
        # A text closes a group: the next image begins another one.
        if not found or (isinstance(part, LoggedImage) and found[-1][1]):
            found.append(([], []))
        images, words = found[-1]
        images.append(part) if isinstance(part, LoggedImage) else words.append(part)
    return [_split_titles(images, words) for images, words in found]


def _take_parts(parts: Iterable[str | LoggedImage]) -> list[str | LoggedImage]:
    """Return the parts, up to the last image that is shown. Raises ToolMisuse."""
    found, most = [], arguments.MAX_ITEMS
    # Counted while images are read: a list may hold thousands, and reading them takes long.
    left = most
    for part in parts:
        left -= isinstance(part, LoggedImage)
        if left < 0:
            raise ToolMisuse(f"Over {most} images came; one call shows {most} at most. Call several times.")
        found.append(part)
    return found


def _drop_captions(parts: list[str | LoggedImage]) -> list[str | LoggedImage]:
    """Turn parts that alternate text, image, text, image to the end into images with these titles."""
    lines = [part for part in parts[::2] if isinstance(part, str) and _is_title(part)]
    images = [part for part in parts[1::2] if isinstance(part, LoggedImage)]
    if not images or not len(lines) == len(images) == len(parts) / 2:
        return parts
    return [replace(image, title=line.strip()) for line, image in zip(lines, images, strict=True)]


def _split_titles(images: list[LoggedImage], words: list[str]) -> tuple[list[LoggedImage], str]:
    if len(images) == len(words) == 1 and _is_title(words[0]):
        return [replace(images[0], title=words[0].strip())], ""
    # Each text makes a line; single letters come from an unpacked text and make one line together
    return images, ("" if all(len(word) == 1 for word in words) else "\n").join(words)


def _is_title(words: str) -> bool:
    return 0 < len(words.strip()) <= MAX_TITLE and "\n" not in words.strip()


def _is_plain(value: Any) -> bool:
    """True if it holds neither text nor image: a list of numbers is shown as one."""
    if isinstance(value, list | tuple):
        return all(_is_plain(each) for each in value)
    return not isinstance(value, str | Image.Image)


def _is_image(value: Any) -> bool:
    if isinstance(value, str):
        return image_texts.key(value) is not None or image_from_text(value) is not None
    return isinstance(value, Image.Image)
