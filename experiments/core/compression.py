"""Compress text responses: pages, parts of pages, JSON, tables."""

from __future__ import annotations

import re
import secrets

import brotli
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers

TEXTS = ("text/", "application/json", "application/problem+json", "application/jsonl", "image/svg+xml")
SHORT = 200
"""Responses up to this many bytes are not compressed."""
QUALITY = 5
"""Brotli quality: faster than gzip, and a quarter smaller."""


class Compression(GZipMiddleware):
    """Compress with Brotli if the browser accepts it, which it does over HTTPS and on localhost; else with Django's
    gzip. Both add padding of random length, so that lengths reveal little about a page's secrets (BREACH)."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not response.get("Content-Type", "").startswith(TEXTS):
            return response
        # The pieces of a stream are needed at once, so it is not compressed.
        if response.streaming or not isinstance(response, HttpResponse):
            # The same address may answer with or without a stream, and then compressed.
            patch_vary_headers(response, ("Accept-Encoding",))
            return response
        if takes(request, "br") and len(response.content) > SHORT and "Content-Encoding" not in response.headers:
            patch_vary_headers(response, ("Accept-Encoding",))
            response.content = pack_padded(response.content, self.max_random_bytes)
            response.headers["Content-Encoding"] = "br"
            response.headers["Content-Length"] = str(len(response.content))
            return response
        # Django's gzip would weaken the ETag. It names a version of the content, and editors send it back in If-Match.
        tag = response.get("ETag")
        packed = super().process_response(request, response)
        if tag:
            packed.headers["ETag"] = tag
        return packed


def takes(request: HttpRequest, encoding: str) -> bool:
    """True if the client accepts this encoding."""
    named = request.headers.get("Accept-Encoding", "")
    return re.search(rf"\b{encoding}\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", named) is not None


def pack_padded(plain: bytes, most: int) -> bytes:
    """Compress with Brotli, after up to `most` random bytes that decoders skip."""
    packer = brotli.Compressor(quality=QUALITY)
    head = packer.flush()  # ends at a byte boundary, so that a metadata block may follow
    return b"".join(
        (head, _metadata(secrets.token_bytes(1 + secrets.randbelow(most))), packer.process(plain), packer.finish())
    )


def _metadata(skipped: bytes) -> bytes:
    """Return a block without data, by RFC 7932, 9.2: not the last, of length 0, one byte for the length to skip."""
    return (0b010110 | (len(skipped) - 1) << 6).to_bytes(2, "little") + skipped
