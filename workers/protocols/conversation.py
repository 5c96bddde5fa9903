"""The conversation between a run and what writes its replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from workers.errors import MaiaError
from workers.record.limits import Usage
from workers.record.replies import FunctionCall, FunctionSchema, ImageLimit, ReasoningItems

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class ImagePart:
    """An image in a message, by key, with the title and activation that stand in for it when it must give way."""

    key: str
    caption: str
    exemplar: bool = False
    """Whether it is one of the system's exemplars, which give way last."""


@dataclass(frozen=True)
class Message:
    """One turn. `parts` are strings and images in reading order."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | ImagePart, ...]
    image_limit: ImageLimit | None = None
    """Of a reply: how many images its provider takes, as it had become known by then."""
    reasoning_items: ReasoningItems | None = None
    """Of a reply: what its provider takes back of the thoughts behind it."""
    functions: tuple[FunctionSchema, ...] = ()
    """Of the last turn: what a model may call to answer it, where its backbone can offer that. Text will always do."""

    @property
    def text(self) -> str:
        """The words alone."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


def usage_of(error: MaiaError) -> Usage:
    """What a reply took that did not come about, for the reason that the error gives."""
    return error.spent if isinstance(error.spent, Usage) else Usage()


@dataclass(frozen=True)
class Reply:
    text: str
    usage: Usage = Usage()  # noqa: RUF009  frozen, so one for all will do
    captions: int = 0
    """Images of the conversation that had to give way to their captions."""
    captions_reason: str = ""
    """Why they had to, in words that follow a colon."""
    image_limit: ImageLimit | None = None
    """How many images the provider takes, where that is known."""
    by_person: bool = False
    """Whether a person wrote it."""
    provider_errors: tuple[str, ...] = ()
    """What came between the question and the reply, in sentences for people: silence, refused parameters."""
    reasoning: str = ""
    """What the model thought before it replied, where its provider shows that. No part of the conversation."""
    calls: tuple[FunctionCall, ...] = ()
    """Functions that the model called, offered or not. The text may be empty then."""
    offered: bool = False
    """Whether the functions of the last turn were offered to it."""
    reasoning_items: ReasoningItems | None = None
    """The same in the form in which its provider takes it back, where it does."""


@dataclass(frozen=True)
class StatusNote:
    """What a backbone says of a reply under way, for whoever watches; nothing of it is part of the reply."""

    what: str
    done: int = 0
    total: int = 1


Emit = Callable[[str | StatusNote | None], None]
"""Takes each piece of a reply as it comes; None: what came so far is void, it starts over. May raise Cancelled."""


class Backbone(Protocol):
    """What writes the replies. Stateless: the conversation is all it knows."""

    label: str
    """What people call it: its kind, and the model where there are several."""
    sees: bool
    """Whether it can look at images, and so describe them."""

    @property
    def price_known(self) -> bool:
        """Whether its replies come with their cost: a limit of the cost cannot hold without."""

    def reply(self, messages: Sequence[Message], load: Callable[[str], Image], emit: Emit, seed: int) -> Reply:
        """Answer the conversation. `load` gives an image by key; `emit` takes each piece of text as it comes.

        While there is nothing to say, `emit` is called with "" twice a second or more, since it may raise Cancelled,
        which must pass through at once. Raises BackboneUnavailable, BackboneRefused.
        """
