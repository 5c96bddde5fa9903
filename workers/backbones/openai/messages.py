"""The conversation as chat completions want it, within an allowance of tokens; images small enough, as data URLs.

Each image is sent once, where it first stood; where it stands again, words point there. If that is too much, the
oldest images give way to their captions. One that stands again later is then sent there: it is not among the oldest.
"""

from __future__ import annotations

import base64
import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from PIL import Image

from workers.lab.imaging import encode_png, thumbnail
from workers.protocols import ImagePart, Message

_Position = tuple[int, int]
"""Position of a message in the conversation, and of a part in the message."""

SIDE = 768
"""Longest side of an image that is sent, in pixels: what a model would shrink it to anyway."""
MOST_PNG = 200_000
"""Bytes above which an image is sent as JPEG."""
_TILE, _TILE_TOKENS, _IMAGE_TOKENS = 512, 170, 85
_TURN_TOKENS = 4
_STEPS = 8
"""Images give way in steps of this share of the allowance: then they are the same ones for some rounds, and what
providers keep of a conversation in their caches stays good."""


@dataclass(frozen=True)
class ChatMessages:
    """What is sent."""

    messages: list[dict[str, Any]]
    tokens: int
    """Estimated."""
    images: int
    captions: int
    """Images that are not in it for want of room."""


def image_keys(messages: Sequence[Message]) -> list[str]:
    """The images of a conversation, each once, in the order in which they first stand there."""
    return list(_find_places(messages))


def build_messages(messages: Sequence[Message], pictures: Mapping[str, EncodedImage], allowance: int) -> ChatMessages:
    """The conversation with as many of its images as fit into `allowance` tokens; the words always stay."""
    places = _find_places(messages)
    words = sum(_TURN_TOKENS + count_text_tokens(message.text) for message in messages)
    tokens = words + sum(pictures[key].tokens for key in places)
    shown = _choose_kept(messages, places, pictures, tokens - allowance, allowance)
    rendering = _Rendering(messages, shown, pictures)
    rendered = _merge_neighbours(rendering.message(number) for number in range(len(messages)))
    left_out = [key for key in places if key not in shown]
    tokens += sum(_caption_tokens(messages, places[key][0]) - pictures[key].tokens for key in left_out)
    return ChatMessages(rendered, tokens, len(shown), len(left_out))


def _merge_neighbours(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours of one role as one message: some servers demand that user and assistant take turns."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {"role": message["role"], "content": _join_contents(joined[-1]["content"], message["content"])}
        else:
            joined.append(message)
    return joined


def replace_system_role(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same for a server that knows no system message: what it says stands before the user's first words."""
    return _merge_neighbours({**each, "role": "user"} if each["role"] == "system" else each for each in messages)


def _join_contents(first: Any, second: Any) -> Any:
    """Two contents as one, each either plain text or a list of parts."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = ([{"type": "text", "text": each}] if isinstance(each, str) else each for each in (first, second))
    return [part for each in parts for part in each]


def _find_places(messages: Sequence[Message]) -> dict[str, list[_Position]]:
    """Where each image stands. Only a user's images can be sent."""
    places: dict[str, list[_Position]] = {}
    for number, message in enumerate(messages):
        for position, part in enumerate(message.parts):
            if isinstance(part, ImagePart) and message.role == "user":
                places.setdefault(part.key, []).append((number, position))
    return places


def _choose_kept(
    messages: Sequence[Message],
    places: Mapping[str, list[_Position]],
    pictures: Mapping[str, EncodedImage],
    surplus: int,
    allowance: int,
) -> dict[str, _Position]:
    """Where each image is shown; those that must give way are missing."""
    step = max(1, allowance // _STEPS)
    surplus = -(-surplus // step) * step
    waiting = {key: iter(found[1:]) for key, found in places.items()}
    oldest = [(found[0], key) for key, found in places.items()]
    heapq.heapify(oldest)
    while surplus > 0 and oldest:
        place, key = heapq.heappop(oldest)
        if later := next(waiting[key], None):
            heapq.heappush(oldest, (later, key))
        else:
            surplus -= max(1, pictures[key].tokens - _caption_tokens(messages, place))
    return {key: place for place, key in oldest}


def _caption_tokens(messages: Sequence[Message], place: _Position) -> int:
    return count_text_tokens(_left_out(_image(messages, place)))


def _image(messages: Sequence[Message], place: _Position) -> ImagePart:
    part = messages[place[0]].parts[place[1]]
    assert isinstance(part, ImagePart)
    return part


def _left_out(part: ImagePart) -> str:
    return f"[an image that is left out for want of room: {part.caption}]"


@dataclass(frozen=True)
class _Rendering:
    messages: Sequence[Message]
    shown: Mapping[str, _Position]
    pictures: Mapping[str, EncodedImage]

    def message(self, number: int) -> dict[str, Any]:
        """Words alone as plain text, which every server takes; neighbouring words in one part."""
        message, parts = self.messages[number], list[dict[str, Any]]()
        for position, part in enumerate(message.parts):
            place = (number, position)
            rendered: dict[str, Any]
            if isinstance(part, ImagePart) and self.shown.get(part.key) == place:
                rendered = {"type": "image_url", "image_url": {"url": self.pictures[part.key].url}}
            else:
                rendered = {"type": "text", "text": part if isinstance(part, str) else self._words(part, place)}
            if parts and parts[-1]["type"] == rendered["type"] == "text":
                parts[-1]["text"] += "\n" + rendered["text"]
            else:
                parts.append(rendered)
        if all(part["type"] == "text" for part in parts):
            return {"role": message.role, "content": "\n".join(part["text"] for part in parts)}
        return {"role": message.role, "content": parts}

    def _words(self, part: ImagePart, place: _Position) -> str:
        """What stands for an image that is not shown here."""
        elsewhere = self.shown.get(part.key)
        if elsewhere is None:
            return _left_out(part)
        if elsewhere > place:
            return f"[an image that is shown further below: {part.caption}]"
        # The first line of another message where the image is shown, such as "Experiment 3: ok"
        lines = self.messages[elsewhere[0]].text.splitlines() if elsewhere[0] != place[0] else []
        heading = f', under "{lines[0][:60]}"' if lines else ""
        return f"[the same image as above{heading}: {_image(self.messages, elsewhere).caption}]"


# --- images -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EncodedImage:
    """One image, ready to be sent."""

    url: str
    tokens: int


def encode_image(image: Image.Image) -> EncodedImage:
    """The image in at most `SIDE` x `SIDE` pixels, as PNG, or as JPEG if that would be large."""
    small = thumbnail(image.convert("RGB"), SIDE)
    kind, data = "png", encode_png(small)
    if len(data) > MOST_PNG:
        buffer = BytesIO()
        small.save(buffer, "JPEG", quality=90, subsampling=0)  # full colour, or thin red outlines would blur
        kind, data = "jpeg", buffer.getvalue()
    return EncodedImage(f"data:image/{kind};base64,{base64.b64encode(data).decode()}", count_image_tokens(*small.size))


def count_image_tokens(width: int, height: int) -> int:
    """Tokens of an image of at most `SIDE` x `SIDE`: 85, and 170 for each tile of 512 x 512 that it touches.

    That is how GPT-4o counts at high detail. Others count otherwise: Claude a little more, small OpenAI models 33
    times as much. Where it matters the provider says so, and the estimate is halved until it fits.
    """
    return _IMAGE_TOKENS + _TILE_TOKENS * -(-width // _TILE) * -(-height // _TILE)


def count_text_tokens(text: str) -> int:
    """Tokens of a text, estimated: one for four letters, one for each character beyond ASCII."""
    wide = len(text) - len(text.encode("ascii", "ignore"))
    return wide + -(-(len(text) - wide) // 4)
