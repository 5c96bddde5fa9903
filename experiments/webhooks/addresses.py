"""Check the addresses of webhooks, and the IP addresses that a worker may connect to.

A name is resolved once per delivery, every resolved IP address is checked, and the connection uses exactly that
address. So a name that resolves differently a moment later reaches nothing. Used by the form and by the sender.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from experiments.core.errors import InvalidInput
from experiments.models.webhook import ADDRESS_CHARS

IpAddress = IPv4Address | IPv6Address
DEFAULT_PORTS = {"https": 443, "http": 80}
MIN_OTHER_PORT = 1024
"""Minimum of other ports. Lower ones belong to other protocols, such as mail."""
_PRINTABLE = re.compile(r"[!-~]+")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_][a-z0-9_-]{0,62}(?:\.[a-z0-9_-]{1,63})*\.?", re.IGNORECASE)
_NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?", re.IGNORECASE)
"""A host whose last part is a number is an IP address in some notation: 127.1, 0x7f.1, 2130706433."""
_GLOBAL_IPV6 = IPv6Network("2000::/3")
_EMBEDDING = (IPv6Network("2002::/16"), IPv6Network("2001::/32"))
"""6to4 and Teredo, which embed an IPv4 address."""


class AddressRefused(Exception):
    """Raised when a name resolves to a forbidden IP address."""


@dataclass(frozen=True)
class WebhookTarget:
    """The parts of an address. `path` includes the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Return the value of the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def parse_target(address: str) -> WebhookTarget:
    """Parse an address. Raises InvalidInput if it is not allowed; names are not resolved here."""
    if not _PRINTABLE.fullmatch(address) or len(address) > ADDRESS_CHARS or "\\" in address:
        words = f"Write an address without spaces or special characters, in at most {ADDRESS_CHARS} characters."
        raise InvalidInput(words, "address")
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise InvalidInput("This is not an address: write one such as https://example.org/hook.", "address") from None
    _check_scheme(parts)
    host = parts.hostname or ""
    # Credentials would appear in lists and logs
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("Leave out the name and password before @: deliveries are signed instead.", "address")
    if parts.fragment:
        raise InvalidInput("Leave out what follows #: no server is sent it.", "address")
    port = DEFAULT_PORTS[parts.scheme] if port is None else port
    if port not in DEFAULT_PORTS.values() and port < MIN_OTHER_PORT:
        raise InvalidInput(f"Port {port} is not possible: use 443, 80, or one from {MIN_OTHER_PORT} up.", "address")
    _check_host(host)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookTarget(parts.scheme, host, port, path)


def _check_scheme(parts: SplitResult) -> None:
    if parts.scheme == "https" or (parts.scheme == "http" and settings.WEBHOOK_PRIVATE):
        return
    raise InvalidInput("Write an address that begins with https://: others can read what is sent by http.", "address")


def _check_host(host: str) -> None:
    """Raise InvalidInput for a missing host or a forbidden IP address."""
    found = _read_ip(host)
    if found is None and not _HOST.fullmatch(host):
        raise InvalidInput("This address names no host: write one such as https://example.org/hook.", "address")
    if found is not None and not may_connect(found):
        raise InvalidInput(_explain_refusal(host, found), "address")


def _read_ip(host: str) -> IpAddress | None:
    """Return the IP address of a host in any notation that the system accepts; None for a name."""
    if ":" in host:
        try:
            # A zone names an interface of this machine
            return ip_address(host) if "%" not in host else None
        except ValueError:
            return None
    if not _NUMERIC.fullmatch(host):
        return None
    # As the system's resolver reads it, such as 0x7f.1 for 127.0.0.1.
    try:
        return IPv4Address(socket.inet_aton(host.rstrip(".")))
    except OSError:
        raise InvalidInput(f"{host} is not an IP address.", "address") from None


def may_connect(found: IpAddress) -> bool:
    """True if a webhook may connect to this IP address. MAIA_WEBHOOK_PRIVATE allows private ones and this machine, but
    never link-local ones, where clouds serve credentials, or multicast."""
    # An IPv4 address in IPv6 notation must obey the rules of IPv4
    if isinstance(found, IPv6Address) and found.ipv4_mapped:
        return may_connect(found.ipv4_mapped)
    # Refused even if private addresses are allowed
    if found.is_multicast or found.is_unspecified or found.is_link_local:
        return False
    if settings.WEBHOOK_PRIVATE and (found.is_loopback or (not found.is_global and not found.is_reserved)):
        return True
    if isinstance(found, IPv6Address):
        return found.is_global and found in _GLOBAL_IPV6 and not any(found in each for each in _EMBEDDING)
    return found.is_global and not found.is_reserved


def _explain_refusal(host: str, found: IpAddress) -> str:
    said = host if host == str(found) else f"{host} ({found})"
    return f"{said} is not a public address. MAIA_WEBHOOK_PRIVATE=yes allows private ones."


def resolve(target: WebhookTarget) -> list[IpAddress]:
    """Return the current IP addresses of a target. Raises AddressRefused if any is forbidden, OSError if there are
    none."""
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(ip_address(str(each[4][0]).partition("%")[0]) for each in found))
    # All of them: the sender may try any
    for each in addresses:
        if not may_connect(each):
            raise AddressRefused(_explain_refusal(target.host, each))
    return addresses
