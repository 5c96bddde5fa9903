"""What is read in a reply: hypotheses, a conclusion, and functions that the model called or may call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

HypothesisStatus = Literal["open", "supported", "refuted"]


@dataclass(frozen=True)
class ImageLimit:
    """How many images of a conversation a provider takes in one request, as its refusals showed."""

    host: str = ""
    model: str = ""
    images: int = 0
    stated: bool = False
    """Whether the provider said the number; otherwise it was found by asking with fewer."""


@dataclass(frozen=True)
class ReasoningItems:
    """What a model thought, in the form in which its provider takes it back. Opaque: it may be encrypted or signed."""

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
    """What the agent says in the end. Which fields are filled depends on the task."""

    description: str = ""
    labels: tuple[str, ...] = ()
    reasoning: str = ""
    bias: str = ""
    domain: str = ""
    """Of a function: for which inputs the answer holds."""
    code: str = ""
    """Of a function: Python whose last function computes it."""


@dataclass(frozen=True)
class FunctionCall:
    """A function that a model called by its provider's own means, as the provider sent it."""

    name: str
    arguments: str
    """JSON as a rule; models also write Python here, or nothing that can be read."""
    id: str = ""
    """The provider's name for this call."""


@dataclass(frozen=True)
class FunctionSchema:
    """A function that a model may call where a reply would otherwise hold tags."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of its arguments. All are required and no others allowed, as providers that enforce it want it."""
