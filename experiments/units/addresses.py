"""Encode names of models and layers in addresses. Names may contain "/" and ":", and each has exactly one address.

Letters, digits and a few signs are unchanged. Every other byte becomes "~" and two hexadecimal digits, since
servers and proxies disagree on an encoded slash: "hf:microsoft/resnet-152" is "hf:microsoft~2Fresnet-152".
"""

from __future__ import annotations

import re

PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-")
WRITTEN = re.compile(r"(?:[A-Za-z0-9_.:-]|~[0-9A-F]{2})+")


def encode_name(name: str) -> str:
    """Return the name as one part of an address; also "." and "..", which browsers would take for folders."""
    # Only dots are left of "." and "..": escaping the first is enough to keep a browser from resolving them.
    start = _escape_bytes(name[0]) if name and not name.strip(".") else ""
    return start + "".join(each if each in PLAIN else _escape_bytes(each) for each in name[bool(start) :])


def _escape_bytes(text: str) -> str:
    return "".join(f"~{byte:02X}" for byte in text.encode())


def decode_name(part: str) -> str:
    """Return the name. Raises ValueError for an invalid encoding."""
    if not WRITTEN.fullmatch(part):
        raise ValueError(f"{part!r} is no encoded name.")
    # On bytes: one letter may be several escapes, which are UTF-8 only once they are joined.
    name = re.sub(rb"~(..)", lambda found: bytes.fromhex(found[1].decode()), part.encode()).decode()
    # Each name has exactly one address: one with needless escapes is refused.
    if encode_name(name) != part or "\x00" in name:
        raise ValueError(f"{part!r} is not the address of {name!r}.")
    return name


class Name:
    """A model or layer as one part of an address."""

    regex = "[^/]+"

    to_python = staticmethod(decode_name)
    to_url = staticmethod(encode_name)


class Number:
    """The number of a unit, without leading zeros."""

    # At most nine digits, so that the number fits PostgreSQL's 4-byte integer.
    regex = "0|[1-9][0-9]{0,8}"

    to_python = staticmethod(int)
    to_url = staticmethod(str)
