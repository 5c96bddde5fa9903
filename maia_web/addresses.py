"""Parse settings that are URLs or host names at the start, so that an invalid one is reported then, not when a
connection fails."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from maia_web.environment import text, words

_HOST = r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\]"


def hosts(name: str, default: str) -> list[str]:
    """Read the variable as names of hosts: `.example.org` is all below it, `*` is any."""
    found = words(name, default)
    for each in found:
        if each != "*" and not re.fullmatch(_HOST, each.removeprefix(".")):
            raise ImproperlyConfigured(
                f"{name} has {each!r}, which is no name of a host. Write it alone, as maia.example.org; scheme and "
                "port belong to MAIA_ORIGINS."
            )
    return found


def origins(name: str) -> list[str]:
    """Read the variable as origins, such as https://maia.example.org or https://*.example.org:8443."""
    found = [each.rstrip("/") for each in words(name)]
    for each in found:
        if not re.fullmatch(rf"https?://(\*\.)?({_HOST})(:\d{{1,5}})?", each):
            raise ImproperlyConfigured(
                f"{name} has {each!r}, which is no origin: a scheme, a host and perhaps a port, without a path. Write "
                "https://maia.example.org."
            )
    return found


def redis(name: str, default: str) -> str:
    """Read the variable as the address of a Redis. Messages never quote a password."""
    url = text(name, default)
    if not re.match(r"(redis|rediss)://[^/]|unix:///", url):
        raise ImproperlyConfigured(
            f"{name} starts with neither redis://, rediss:// nor unix:///. Write redis://host:6379/0, or "
            "unix:///path/to/socket."
        )
    return url


def issuer(url: str, client: str) -> str:
    """Read the address of an OpenID provider, "" for none. This site must be registered there."""
    parts = urlsplit(url)
    # Without TLS, anyone on the way could read the client's secret: http is for this machine alone.
    loopback = parts.hostname in {"127.0.0.1", "localhost", "::1"}
    if url and not (parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and loopback))):
        raise ImproperlyConfigured(f"MAIA_OIDC_ISSUER={url!r} does not start with https://.")
    if url and not client:
        raise ImproperlyConfigured("Set MAIA_OIDC_CLIENT_ID, and a secret: MAIA_OIDC_ISSUER needs both.")
    return url.removesuffix("/.well-known/openid-configuration").rstrip("/")


def endpoint(url: str, name: str = "MAIA_S3_ENDPOINT", of: str = "a store", unset: str = "for AWS") -> str:
    """Read the URL of `of`, such as a store of objects; "" means what `unset` says."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    labels = r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*|[0-9a-f:]+:[0-9a-f.:]*"
    if url and not (parts.scheme in {"http", "https"} and re.fullmatch(labels, host)):
        raise ImproperlyConfigured(
            f"{name}={url!r} is no address of {of}: write http://host:port or https://host, or unset it {unset}."
        )
    return url


def database(url: str, password: str = "") -> dict[str, object]:
    """Return Django's settings for `sqlite:///path` or `postgres://user:password@host:port/name?sslmode=require`, where
    the part after ? is libpq's. Messages never quote a password.

    `password` is used if the address has none.
    """
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        # The web server and workers both write: readers never wait (WAL), writers queue up instead of failing.
        options = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": unquote(parts.path.removeprefix("/")),
            "OPTIONS": options,
        }
    if parts.scheme in {"postgres", "postgresql"}:
        options = dict(parse_qsl(parts.query))
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.removeprefix("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or "") or password,
            "HOST": unquote(parts.hostname or "") or options.pop("host", ""),
            "PORT": _port(parts),
            "OPTIONS": options,
            "CONN_HEALTH_CHECKS": True,
        }
    raise ImproperlyConfigured(
        f"MAIA_DATABASE_URL starts with {parts.scheme!r}, and not with sqlite:/// or postgres://. Write "
        "postgres://user:password@host:port/name."
    )


def _port(parts: SplitResult) -> str:
    """Return the port of a database, "" for the default."""
    try:
        port = parts.port
    except ValueError:
        port = -1
    if port == -1 or parts.fragment:
        raise ImproperlyConfigured(
            "MAIA_DATABASE_URL cannot be read: a password that has # / ? or @ in it is written as %23 %2F %3F or %40, "
            "or put into MAIA_DATABASE_PASSWORD."
        )
    return str(port or "")
