"""Texts go compressed to browsers that take it: pages, parts of pages, JSON, tables. Nothing else is touched."""

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
"""Bytes up to which nothing is gained."""
QUALITY = 5
"""Of Brotli: packs a page in less time than gzip takes, and a quarter smaller."""


class Compression(GZipMiddleware):
    """Brotli where the browser takes it, which it does by HTTPS and at this machine; else Django's gzip.

    Both pad what they pack by a random length, so that lengths tell little of the secrets of a page (BREACH; the tokens
    of our forms differ from page to page besides). Streams are left alone: their pieces are wanted at once. An ETag
    names a version of what was read, however it came, and editors send it back in If-Match: it stays.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not response.get("Content-Type", "").startswith(TEXTS):
            return response
        if response.streaming or not isinstance(response, HttpResponse):
            # The same address may answer at once, and then compressed
            patch_vary_headers(response, ("Accept-Encoding",))
            return response
        if takes(request, "br") and len(response.content) > SHORT and "Content-Encoding" not in response.headers:
            patch_vary_headers(response, ("Accept-Encoding",))
            response.content = pack_padded(response.content, self.max_random_bytes)
            response.headers["Content-Encoding"] = "br"
            response.headers["Content-Length"] = str(len(response.content))
            return response
        tag = response.get("ETag")
        packed = super().process_response(request, response)
        if tag:
            packed.headers["ETag"] = tag
        return packed


def takes(request: HttpRequest, encoding: str) -> bool:
    """Whether whoever asks names this encoding, and not as one that it refuses."""
    named = request.headers.get("Accept-Encoding", "")
    return re.search(rf"\b{encoding}\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", named) is not None


def pack_padded(plain: bytes, most: int) -> bytes:
    """In Brotli's form, with up to `most` random bytes in front that whoever unpacks it skips."""
    packer = brotli.Compressor(quality=QUALITY)
    head = packer.flush()  # ends at a whole byte, so that a block of metadata may follow
    return b"".join(
        (head, _metadata(secrets.token_bytes(1 + secrets.randbelow(most))), packer.process(plain), packer.finish())
    )


def _metadata(skipped: bytes) -> bytes:
    """A block that holds no data, by RFC 7932, 9.2: not the last, of length 0, one byte for how much is skipped."""
    return (0b010110 | (len(skipped) - 1) << 6).to_bytes(2, "little") + skipped
