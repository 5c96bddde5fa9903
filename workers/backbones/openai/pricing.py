"""Compute what replies cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from workers.protocols import Price, Provider
from workers.record.limits import Usage

_MILLION = 1_000_000
_VERSION = re.compile(r"[-@:](\d{3}|latest|preview)")
"""How the name of a version continues that of the model: gpt-4o-2024-08-06, gemini-2.0-flash-001, qwen:latest."""
_PRIVATE = tuple(
    map(ip_network, ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7"))
)
_FREE = Price(0.0, 0.0)


def price_of(provider: Provider, model: str) -> Price | None:
    """Return the model's price at this provider; None if unknown. A local server is free, unless a price is set."""
    found = find_price(provider.prices, model)
    # A price in the settings counts before the address: a private proxy may sell replies.
    return _FREE if found is None and _is_private(provider.base_url) else found


def find_price(prices: Mapping[str, Price], model: str) -> Price | None:
    """Return the model's price; None if unknown.

    A version of a model costs what the model does, unless the table names the version itself.
    """
    fitting = (name for name in prices if model.startswith(name) and _VERSION.match(model, len(name)))
    # A version costs what the model does, unless the table names it; the longest name is the closest.
    return prices.get(model) or prices.get(max(fitting, key=len, default=""))


def _is_private(base_url: str) -> bool:
    """True if the address is on this machine or in a private network, where replies are not sold."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:  # half an IPv6 address
        return False
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".local")
    return any(address in network for network in _PRIVATE)


def price_usage(price: Price | None, prompt: int, completion: int, cached: int = 0) -> Usage:
    """Price the tokens. `cached` are those of the prompt that the provider had in its cache."""
    # Some providers count more cached tokens than the prompt has.
    cached = min(cached, prompt)
    if price is None:
        return Usage(prompt, completion, priced=False, cached_tokens=cached)
    price = Price(*price)
    # Without a price of its own, a cached token costs as much as another.
    cheaper = price.prompt if price.cached is None else price.cached
    cost = ((prompt - cached) * price.prompt + cached * cheaper + completion * price.completion) / _MILLION
    return Usage(prompt, completion, cost, cached_tokens=cached)
