"""Choose which images of a conversation are sent, if not all of them may be. Exemplars are left out last."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workers.backbones.openai.encoding import EncodedImage, count_text_tokens
from workers.backbones.openai.reasoning import count_items
from workers.protocols import ImagePart, Message

Position = tuple[int, int]
"""Position of a message in the conversation, and of a part in the message."""

EXEMPLARS = 0.5
"""Share of the room that exemplars may keep."""
REFILL = 2 / 3
"""Share of the room still used after older images were left out. A smaller value keeps caches valid longer."""
MAX_FEW_IMAGES = 16
"""Up to this limit of images all of the room is used."""
TURN_TOKENS = 4


@dataclass(frozen=True)
class Room:
    """What a request may hold."""

    tokens: int
    images: int | None = None
    """None if no limit of the provider is known."""


class ImageSelection:
    """The images chosen of one conversation. An image that was left out is shown again where it next occurs."""

    def __init__(self, messages: Sequence[Message], pictures: Mapping[str, EncodedImage], room: Room) -> None:
        self.shown: dict[str, Position] = {}
        """Where each image is shown, in the order of the conversation."""
        self.left_out: set[str] = set()
        self.tokens = 0
        """Estimated tokens of everything sent."""
        self.limited = False
        """True if images were left out because of the provider's limit of images, not for lack of tokens."""
        self._pictures, self._room = pictures, room
        self._image_tokens = 0
        self._last: dict[str, tuple[int, ImagePart]] = {}
        """The last message with an image, and the image there."""
        # Turn by turn, as it was asked: a longer conversation then makes the same choices for its beginning, which
        # providers keep in their caches.
        for number, message in enumerate(messages):
            # Roles and separators take tokens too.
            self.tokens += TURN_TOKENS + count_text_tokens(message.text) + count_items(message)
            if message.role == "user":
                self._add(number, message)
                self._make_room(number)
        self._make_room(len(messages))

    def _add(self, number: int, message: Message) -> None:
        for position, part in enumerate(message.parts):
            if isinstance(part, ImagePart):
                if part.key in self.left_out:
                    self.left_out.remove(part.key)
                    self.tokens -= self._count_caption(part.key)
                if part.key not in self.shown:
                    self.shown[part.key] = (number, position)
                    self._count_image(part.key, 1)
                self._last[part.key] = (number, part)

    def _make_room(self, number: int) -> None:
        """Leave images out if the conversation up to this message has too many."""
        if self._fits(1):
            return
        self.limited |= self._room.images is not None and len(self.shown) > self._room.images
        lasting = self._find_lasting()
        others = [key for key in self._order() if key not in lasting]
        # More than needed at once, so that the beginning stays the same for some rounds.
        self._give_way([key for key in others if self._last[key][0] < number], self._refill())
        self._give_way([key for key in others if self._last[key][0] == number], 1)
        self._give_way(lasting[::-1], 1)

    def _refill(self) -> float:
        # With so few images there is little left to keep in a cache.
        return 1 if self._room.images is not None and self._room.images <= MAX_FEW_IMAGES else REFILL

    def _order(self) -> list[str]:
        """Order the shown images, those to leave out first first: the oldest, then the weakest exemplars."""
        # By the last message that shows it: an image that came up again is recent.
        oldest = sorted(self.shown, key=lambda key: self._last[key][0])
        exemplars = [key for key in self.shown if self._last[key][1].exemplar]
        return [key for key in oldest if not self._last[key][1].exemplar] + exemplars[::-1]

    def _find_lasting(self) -> list[str]:
        """Return the exemplars that stay, the strongest first: as many as fit into their share of the room."""
        images = math.inf if self._room.images is None else float(self._room.images)
        tokens = float(self._room.tokens - self.tokens + self._image_tokens)
        lasting: list[str] = []
        for key in self._order()[::-1]:
            # Exemplars may keep only a share of the room, so each costs more than itself.
            images, tokens = images - 1 / EXEMPLARS, tokens - self._pictures[key].tokens / EXEMPLARS
            if not self._last[key][1].exemplar or min(images, tokens) < 0:
                break
            lasting.append(key)
        return lasting

    def _give_way(self, keys: Sequence[str], share: float) -> None:
        """Leave images out, one by one, until those shown take this share of the room. A last one that fits stays."""
        for key in keys:
            # A single image that fits is worth more than a cache.
            if self._fits(share) or (len(self.shown) == 1 and self._fits(1)):
                return
            del self.shown[key]
            self.left_out.add(key)
            self._count_image(key, -1)
            self.tokens += self._count_caption(key)

    def _fits(self, share: float) -> bool:
        room = self._room.tokens - (self.tokens - self._image_tokens)
        few = self._room.images is None or len(self.shown) <= self._room.images * share
        return few and self._image_tokens <= room * share

    def _count_image(self, key: str, times: int) -> None:
        self.tokens += times * self._pictures[key].tokens
        self._image_tokens += times * self._pictures[key].tokens

    def _count_caption(self, key: str) -> int:
        return count_text_tokens(describe_left_out(self._last[key][1]))


def describe_left_out(part: ImagePart) -> str:
    """Describe an image that is not sent."""
    return f"[an image that is left out for want of room: {part.caption}]"
