"""What tools answer with: data as short JSON, the agent's conversation as text and images."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

import anyio
from django.http import Http404, HttpRequest, HttpResponse
from mcp.types import ContentBlock, ImageContent, TextContent

from experiments.gallery.images import serve_image, serve_thumbnail
from experiments.mcp import entry
from workers.agent.conversation import Part

MAX_IMAGE_BYTES = 480_000
"""Of all images of an answer. Clients made with the SDK take messages of 1 MiB, and base64 adds a third."""
TRIES, TRY_EVERY = 5, 0.5
"""How often small versions are looked for again, and after how many seconds."""
WIDTHS = (0, 320, 160)
"""Pixels, the first that fits the bytes; 0 for the image itself."""


def compact(value: Any) -> Any:
    """The same without what is empty: each word of an answer is paid for."""
    if isinstance(value, dict):
        kept = {name: compact(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in (None, "", [], {})}
    return [compact(each) for each in value] if isinstance(value, list) else value


def tell(data: Any) -> TextContent:
    """Data as JSON in one line, without what is empty."""
    return TextContent(text=json.dumps(compact(data), ensure_ascii=False))


async def tell_parts(parts: Sequence[Part]) -> list[ContentBlock]:
    """Words and images in order, the images small enough for one message; those that are too many are told.

    A worker makes the small versions just after the images: where only these fit, they are waited for.
    """
    keys = list(dict.fromkeys(part.key for part in parts if not isinstance(part, str)))
    found = await entry.in_thread(_load_within, keys)
    for _ in range(TRIES):
        if len(found) == len(keys):
            break
        await anyio.sleep(TRY_EVERY)
        found = await entry.in_thread(_load_within, keys)
    blocks: list[ContentBlock] = []
    for part in parts:
        if isinstance(part, str):
            blocks.append(TextContent(text=part))
        elif part.key in found:
            blocks.append(found[part.key])
    if lacking := len(keys) - len(found):
        blocks.append(TextContent(text=f"{lacking} images are not shown: they are away, or too large together."))
    return blocks


def _load_within(keys: Sequence[str]) -> dict[str, ImageContent]:
    """The images as large as their sum allows; of the smallest size as many as fit."""
    found: dict[str, ImageContent] = {}
    for width in WIDTHS:
        found, left = {}, MAX_IMAGE_BYTES
        for key, response in _read(keys, width):
            left -= len(response.content)
            if left < 0:
                break
            data = base64.b64encode(response.content).decode()
            found[key] = ImageContent(data=data, mime_type=response.headers["Content-Type"])
        if left >= 0:
            break
    return found


def _read(keys: Sequence[str], width: int) -> Iterator[tuple[str, HttpResponse]]:
    """The files of the images that can be had."""
    for key in keys:
        try:
            request = HttpRequest()
            response = serve_thumbnail(request, key, width) if width else serve_image(request, key)
        except Http404:
            continue
        if response.status_code == 200:
            yield key, response
