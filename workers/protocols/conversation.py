"""The conversation between a run and the author of its replies."""

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
    """An image in a message, by key, with the title and activation that replace it when there is no room."""

    key: str
    caption: str
    exemplar: bool = False
    """True for one of the system's exemplars, which are left out last."""


@dataclass(frozen=True)
class Message:
    """One turn. `parts` are strings and images in reading order."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | ImagePart, ...]
    image_limit: ImageLimit | None = None
    """Of a reply: the provider's limit of images, as known by then."""
    reasoning_items: ReasoningItems | None = None
    """Of a reply: what its provider takes back of the thoughts behind it."""
    functions: tuple[FunctionSchema, ...] = ()
    """Of the last turn: functions that a model may call to answer. Text is always accepted."""

    @property
    def text(self) -> str:
        """Only the text."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


def usage_of(error: MaiaError) -> Usage:
    """Return the usage of a failed reply, from its error."""
    # Other errors may carry nothing, or something else
    return error.spent if isinstance(error.spent, Usage) else Usage()


@dataclass(frozen=True)
class Reply:
    text: str
    usage: Usage = Usage()  # noqa: RUF009  frozen, so it can be shared
    captions: int = 0
    """Images of the conversation that were replaced by their captions."""
    captions_reason: str = ""
    """Why they were, in words that follow a colon."""
    image_limit: ImageLimit | None = None
    """The provider's limit of images, if known."""
    by_person: bool = False
    """True if a person wrote it."""
    provider_errors: tuple[str, ...] = ()
    """Problems between the question and the reply, in sentences for people: silence, refused parameters."""
    reasoning: str = ""
    """What the model thought before it replied, if its provider shows that. Not part of the conversation."""
    calls: tuple[FunctionCall, ...] = ()
    """Functions that the model called, offered or not. The text may then be empty."""
    offered: bool = False
    """True if the functions of the last turn were offered to it."""
    reasoning_items: ReasoningItems | None = None
    """The thoughts in the form in which the provider takes them back, if it does."""


@dataclass(frozen=True)
class StatusNote:
    """What a backbone reports of a reply under way, for viewers; not part of the reply."""

    what: str
    done: int = 0
    total: int = 1


Emit = Callable[[str | StatusNote | None], None]
"""Takes each piece of a reply as it comes. None discards what came so far. May raise Cancelled."""


class Backbone(Protocol):
    """The author of the replies. Stateless: the conversation is all it knows."""

    label: str
    """Its name for people: its kind, and the model if there are several."""
    sees: bool
    """True if it can look at images, and so describe them."""

    @property
    def price_known(self) -> bool:
        """True if its replies come with their cost. Limits of the cost need this."""

    def reply(self, messages: Sequence[Message], load: Callable[[str], Image], emit: Emit, seed: int) -> Reply:
        """Answer the conversation. `load` gives an image by key; `emit` takes each piece of text as it comes.

        While there is nothing to say, `emit` is called with "" at least twice a second, since it may raise Cancelled,
        which must pass through at once. Raises BackboneUnavailable, BackboneRefused.
        """
