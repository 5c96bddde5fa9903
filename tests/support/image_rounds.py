"""Rounds of a long run with many images against a provider that takes few: what each request keeps and caches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from PIL import Image

from tests.support.openai_backbone import backbone
from tests.support.provider import Answer, Provider, refuses, says, unless
from workers.backbones.openai.encoding import count_text_tokens
from workers.protocols import ImagePart, Message

EXEMPLARS, IMAGES = 15, 32
"""Images of the first experiment, and of each one after it."""
EACH = 255
"""Tokens of a small image."""
PICTURE = Image.new("RGB", (8, 8))
INSTRUCTIONS = Message("system", ("Rules of the investigation, and of its tools. " * 280,))


@dataclass(frozen=True)
class Round:
    """What one round asked for; `requests` counts those that were refused too."""

    requests: int
    images: int
    exemplars: int
    cached: float
    """Share of the accepted request's tokens that begin as the accepted request before it did."""


def at_most(limit: int, refusal: str = "At most {limit} image(s) may be provided in one prompt.") -> Answer:
    """A provider that takes so many images; `{limit}` and `{sent}` are filled in."""

    def refuse(handler) -> None:
        sent = count_images(handler.body)
        message = refusal.replace("{limit}", str(limit)).replace("{sent}", str(sent))
        refuses(400, message)(handler)

    return unless(says("red"), refuse, lambda body: count_images(body) <= limit)


def count_images(body: dict) -> int:
    return json.dumps(body["messages"]).count('"image_url": {')


def play_rounds(answer: Answer, rounds: int = 20, **settings) -> list[Round]:
    """Ask for one reply after each experiment, each time by a new backbone, as another process would."""
    told, played, before = [INSTRUCTIONS, Message("user", ("What drives it?",))], [], []
    with Provider(answer) as server:
        for number in range(rounds):
            told += [
                Message("assistant", (f"Round {number}. " + "Some thoughts and a program. " * 60,)),
                result(number),
            ]
            first = len(server.asked)
            reply = backbone(server, **settings).reply(told, lambda key: PICTURE, lambda piece: None, 1)
            if reply.image_limit:
                told[-2] = replace(told[-2], image_limit=reply.image_limit)
            body = server.asked[-1]
            pieces = list(_pieces(body))
            same = [a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(pieces, before, strict=False))]
            cached = sum(map(_tokens, same)) / sum(map(_tokens, pieces))
            played.append(Round(len(server.asked) - first, count_images(body), count_exemplars(pieces), cached))
            before = pieces
    return played


def result(number: int) -> Message:
    names = [f"{number}.{place}" for place in range(IMAGES if number else EXEMPLARS)]
    parts: list[str | ImagePart] = [f"Experiment {number + 1}: ok"]
    for place, name in enumerate(names):
        line = f"{place + 1}. a toy of kind {name} on a lawn — activation {place}.25"
        kind = {} if number else exemplar()
        parts += [line, ImagePart(f"key of {name}", line, **kind)]
    return Message("user", tuple(parts))


def exemplar() -> dict[str, bool]:
    return {"exemplar": True} if "exemplar" in ImagePart.__dataclass_fields__ else {}


def count_exemplars(pieces: list[str]) -> int:
    """Images of the first experiment that a request shows."""
    end = next((place for place, piece in enumerate(pieces) if "Experiment 2:" in piece), len(pieces))
    return sum(piece.startswith("data:") for piece in pieces[:end])


def _pieces(body: dict) -> Iterator[str]:
    """The request as lines and images, in order."""
    for message in body["messages"]:
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield from part["text"].splitlines() if part["type"] == "text" else [part["image_url"]["url"]]


def _tokens(piece: str) -> int:
    return EACH if piece.startswith("data:") else count_text_tokens(piece)
