"""Build the messages of chat completions from the conversation, with the images that fit.

Each image is sent once, where it first occurs; later occurrences refer to it. If that is too much, some are replaced by
their captions (`image_selection`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workers.backbones.openai.encoding import EncodedImage
from workers.backbones.openai.image_selection import ImageSelection, Position, Room, describe_left_out
from workers.backbones.openai.reasoning import read_items
from workers.protocols import ImagePart, Message


@dataclass(frozen=True)
class ChatMessages:
    """The messages to send."""

    messages: list[dict[str, Any]]
    tokens: int
    """Estimated."""
    images: int
    captions: int
    """Images that are left out for lack of room."""
    limited: bool = False
    """True if some are left out because the provider takes no more."""


def image_keys(messages: Sequence[Message]) -> list[str]:
    """List the images of a conversation that can be sent, each once: only a user's."""
    # Providers refuse images in other roles.
    parts = [part for message in messages if message.role == "user" for part in message.parts]
    return list(dict.fromkeys(part.key for part in parts if isinstance(part, ImagePart)))


def build_messages(messages: Sequence[Message], pictures: Mapping[str, EncodedImage], room: Room) -> ChatMessages:
    """Build the messages with as many images as fit; the words always stay."""
    chosen = ImageSelection(messages, pictures, room)
    rendering = _Rendering(messages, chosen.shown, pictures)
    rendered = _merge_neighbours(rendering.message(number) for number in range(len(messages)))
    return ChatMessages(rendered, chosen.tokens, len(chosen.shown), len(chosen.left_out), chosen.limited)


def _merge_neighbours(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge neighbouring messages of one role."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        # Some servers demand that user and assistant alternate.
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {"role": message["role"], "content": _join_contents(joined[-1]["content"], message["content"])}
        else:
            joined.append(message)
    return joined


def replace_system_role(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages for a server without system messages: their text precedes the user's first words."""
    return _merge_neighbours({**each, "role": "user"} if each["role"] == "system" else each for each in messages)


def _join_contents(first: Any, second: Any) -> Any:
    """Join two contents, each either plain text or a list of parts."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = ([{"type": "text", "text": each}] if isinstance(each, str) else each for each in (first, second))
    return [part for each in parts for part in each]


def _image(messages: Sequence[Message], place: Position) -> ImagePart:
    part = messages[place[0]].parts[place[1]]
    assert isinstance(part, ImagePart)
    return part


@dataclass(frozen=True)
class _Rendering:
    messages: Sequence[Message]
    shown: Mapping[str, Position]
    pictures: Mapping[str, EncodedImage]

    def message(self, number: int) -> dict[str, Any]:
        """Build a message: text alone as plain text, which every server takes; neighbouring texts in one part."""
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
        # Plain text for text alone, which every server takes.
        if all(part["type"] == "text" for part in parts):
            # One line each: parts are lines of one message.
            words = "\n".join(part["text"] for part in parts)
            return {"role": message.role, "content": words, **read_items(message)}
        return {"role": message.role, "content": parts}

    def _words(self, part: ImagePart, place: Position) -> str:
        """Return the words for an image that is not shown here."""
        elsewhere = self.shown.get(part.key)
        if elsewhere is None:
            return describe_left_out(part)
        if elsewhere > place:
            return f"[an image that is shown further below: {part.caption}]"
        # The first line of the message where the image is shown, such as "Experiment 3: ok"
        lines = self.messages[elsewhere[0]].text.splitlines() if elsewhere[0] != place[0] else []
        heading = f', under "{lines[0][:60]}"' if lines else ""
        return f"[the same image as above{heading}: {_image(self.messages, elsewhere).caption}]"
