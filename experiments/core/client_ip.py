"""Find the client's IP address, as the connection or trusted proxies report it."""

from __future__ import annotations

from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest


def address(request: HttpRequest) -> str | None:
    """Return the client's IP address; None if it cannot be known, as behind a Unix socket."""
    peer = valid(request.META.get("REMOTE_ADDR", ""))
    trusted = settings.TRUSTED_PROXIES
    hops = [part for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    if not trusted or not hops:
        return peer
    # Each proxy appends the address of its peer, and a client may send the header with any content. So only the last
    # entries count, as many as there are proxies of ours (`MAIA_TRUSTED_PROXIES`).
    return valid(hops[max(0, len(hops) - trusted)]) or peer


def valid(text: str) -> str | None:
    """Return the address without port and brackets; None if it is invalid."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    # Several colons without brackets are an IPv6 address without a port.
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    # A socket for both protocols reports 1.2.3.4 as ::ffff:1.2.3.4.
    return str(getattr(found, "ipv4_mapped", None) or found)
