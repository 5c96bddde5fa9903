"""The parts of a reply: hypotheses, a conclusion, and functions that the model called or may call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

HypothesisStatus = Literal["open", "supported", "refuted"]


@dataclass(frozen=True)
class ImageLimit:
    """How many images of a conversation a provider accepts in one request, learned from its refusals."""

    host: str = ""
    model: str = ""
    images: int = 0
    stated: bool = False
    """True if the provider stated the number, False if it was found by retrying with fewer images."""


@dataclass(frozen=True)
class ReasoningItems:
    """A model's reasoning in the form that its provider accepts back. It is opaque: it may be encrypted or signed."""

    host: str = ""
    model: str = ""
    fields: str = ""
    """Fields of the assistant's message, as a JSON object."""


@dataclass(frozen=True)
class Hypothesis:
    number: int
    text: str
    status: HypothesisStatus = "open"
    reason: str = ""
    """The figure that decides it, in the agent's words."""


@dataclass(frozen=True)
class Conclusion:
    """The agent's final answer. The task determines which fields are filled."""

    description: str = ""
    labels: tuple[str, ...] = ()
    reasoning: str = ""
    bias: str = ""
    domain: str = ""
    """For a function: the inputs for which the answer holds."""
    code: str = ""
    """For a function: Python whose last function computes it."""


@dataclass(frozen=True)
class FunctionCall:
    """A function call through the provider's own API, as received."""

    name: str
    arguments: str
    """Usually JSON. Models also write Python here, or unreadable text."""
    id: str = ""
    """The provider's id of this call."""


@dataclass(frozen=True)
class FunctionSchema:
    """A function that a model may call instead of writing tags."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of its arguments. All are required and no others allowed, because providers that enforce schemas
    need this."""
