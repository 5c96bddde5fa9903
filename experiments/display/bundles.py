"""Join a page's style sheets and scripts into one file each, at an address that names the parts and their hash."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from urllib.parse import unquote

import brotli
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.utils.html import escape
from rcssmin import cssmin
from rjsmin import jsmin

from experiments.core.compression import takes
from experiments.display.script_modules import Unjoinable, join_scripts, read

KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
FOREVER = "public, max-age=31536000, immutable"
MAX_PARTS = 40
"""Maximum parts of one bundle."""
_ADDRESS = re.compile(r"/bundles/([0-9a-f]{16})\.(css|js)")
_LINK = re.compile(
    rf'<link rel="stylesheet" href="(?P<style>{settings.STATIC_URL}[^"]+)">'
    rf'|<script(?P<module> type="module")? src="(?P<script>{settings.STATIC_URL}[^"]+)"(?P<late> defer)?></script>'
)
_NAME = re.compile(r"(?:[\w-]+/)*[\w.-]+")
_ELSEWHERE = re.compile(r"@import\b.*|@charset\b.*|url\((?!\s*[\"']?(?:data:|#))[^)]*\)")


@dataclass(frozen=True)
class Bundle:
    """Several files joined, without comments and indents."""

    key: str
    plain: bytes

    @cached_property
    def gzip(self) -> bytes:
        # Without a time stamp, the same text has the same bytes in every process.
        return gzip.compress(self.plain, 9, mtime=0)

    @cached_property
    def br(self) -> bytes:
        """Return the file in Brotli, compressed within a tenth of a second."""
        # Quality 11 is smaller still but slower, and the first visitor after a start waits for this.
        return brotli.compress(self.plain, mode=brotli.MODE_TEXT, quality=10)


def address(names: Iterable[str], kind: str) -> str:
    """Return the address of the bundle of these static files."""
    # A part that two templates include is joined once.
    parts = tuple(dict.fromkeys(names))
    return f"{settings.PREFIX}/bundles/{make(parts, kind).key}.{kind}?{','.join(parts)}"


def join_links(html: str) -> str:
    """Replace the links to style sheets and scripts, except blocking scripts, by one of each."""
    named: dict[str, list[str]] = {"css": [], "js": []}

    def take(found: re.Match[str]) -> str:
        name = unquote(found["style"] or found["script"]).removeprefix(settings.STATIC_URL)
        # A script that is neither a module nor deferred must run at its place in the page.
        if found["script"] and not (found["module"] or found["late"]):
            return found[0].replace(found["script"], escape(address([name], "js")))
        named["js" if found["script"] else "css"].append(name)
        return ""

    rest = _LINK.sub(take, html)
    style = f'<link rel="stylesheet" href="{escape(address(named["css"], "css"))}">' if named["css"] else ""
    script = f'<script src="{escape(address(named["js"], "js"))}" defer></script>' if named["js"] else ""
    # The replaced links leave empty lines behind.
    lines = [line.strip() for line in (*rest.splitlines(), style, script)]
    return "\n".join(f"  {line}" for line in lines if line).lstrip()


@lru_cache(maxsize=128)
def make(names: tuple[str, ...], kind: str) -> Bundle:
    """Build the bundle of these files. Raises Unjoinable if one cannot be part of it."""
    text = jsmin(join_scripts(names)) if kind == "js" else cssmin("\n".join(_style(name) for name in names))
    plain = text.encode()
    # The names are part of the key: two lists with the same text are two addresses.
    key = hashlib.sha256(",".join(names).encode() + b"\0" + plain).hexdigest()[:16]
    return Bundle(key, plain)


def _style(name: str) -> str:
    text = read(name)
    # Relative addresses and @import are resolved from the bundle's own address.
    if found := _ELSEWHERE.search(text):
        raise Unjoinable(f"{name}: {found[0]} would not mean the same in a bundle.")
    return text


# --- responses ---


class Bundles:
    """Middleware that serves bundles, before sessions and sign-in: they contain nothing private."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        named = _ADDRESS.fullmatch(request.path_info)
        if named is None or request.method not in {"GET", "HEAD"}:
            return self.get_response(request)
        return serve(request, *named.groups())


def serve(request: HttpRequest, key: str, kind: str) -> HttpResponse:
    """Return the bundle; 404 if its parts cannot be joined."""
    # The address names the parts, so any process can build the bundle, also after a restart.
    names = tuple(unquote(request.META.get("QUERY_STRING", "")).split(","))
    if len(names) > MAX_PARTS or not all(_NAME.fullmatch(name) and name.endswith(f".{kind}") for name in names):
        return HttpResponseNotFound()
    try:
        bundle = make(names, kind)
    except Unjoinable:
        return HttpResponseNotFound()
    encoding = next((each for each in ("br", "gzip") if takes(request, each)), "")
    response = HttpResponse(getattr(bundle, encoding or "plain"), content_type=KINDS[kind])
    # A page from before an upgrade names a hash that no longer fits: it gets the new parts, but must not keep them.
    response.headers["Cache-Control"] = FOREVER if key == bundle.key else "no-cache"
    # Caches in between must keep each encoding apart.
    response.headers["Vary"] = "Accept-Encoding"
    if encoding:
        response.headers["Content-Encoding"] = encoding
    return response
