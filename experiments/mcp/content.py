"""Answers of tools: data as short JSON, the agent's conversation as text and images."""

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
"""Maximum bytes of all images in an answer. SDK clients accept messages of 1 MiB, and base64 adds a third."""
TRIES, TRY_EVERY = 5, 0.5
"""Number of retries for thumbnails, and the delay between them in seconds."""
WIDTHS = (0, 320, 160)
"""Widths in pixels to try until all images fit; 0 is the full image."""


def compact(value: Any) -> Any:
    """Return the value without empty parts: each token of an answer costs money."""
    if isinstance(value, dict):
        kept = {name: compact(each) for name, each in value.items()}
        # Zero and false are kept: they say something.
        return {name: each for name, each in kept.items() if each not in (None, "", [], {})}
    return [compact(each) for each in value] if isinstance(value, list) else value


def format_data(data: Any) -> TextContent:
    """Return data as JSON on one line, without empty parts."""
    return TextContent(text=json.dumps(compact(data), ensure_ascii=False))


async def format_parts(parts: Sequence[Part]) -> list[ContentBlock]:
    """Return texts and images in order, with images small enough for one message. Says how many did not fit.

    Workers make thumbnails just after the images, so missing ones are waited for.
    """
    # An image shown twice is counted and sent as one key
    keys = list(dict.fromkeys(part.key for part in parts if not isinstance(part, str)))
    found = await entry.run_in_thread(_load_within, keys)
    for _ in range(TRIES):
        if len(found) == len(keys):
            break
        await anyio.sleep(TRY_EVERY)
        found = await entry.run_in_thread(_load_within, keys)
    blocks: list[ContentBlock] = []
    for part in parts:
        if isinstance(part, str):
            blocks.append(TextContent(text=part))
        elif part.key in found:
            blocks.append(found[part.key])
    # Told, so that a model does not reason about images that it has not seen.
    if lacking := len(keys) - len(found):
        blocks.append(TextContent(text=f"{lacking} images are not shown: they are missing, or too large in total."))
    return blocks


def _load_within(keys: Sequence[str]) -> dict[str, ImageContent]:
    """Return the images at the largest width at which all fit; at the smallest width, as many as fit."""
    found: dict[str, ImageContent] = {}
    for width in WIDTHS:
        # All images at the same width, so that they can be compared
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
    """Yield the image files that exist."""
    for key in keys:
        try:
            # Without conditional headers, so that the image is always sent
            request = HttpRequest()
            response = serve_thumbnail(request, key, width) if width else serve_image(request, key)
        except Http404:
            continue
        if response.status_code == 200:
            yield key, response
