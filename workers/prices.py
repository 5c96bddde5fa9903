"""Read the prices of language models: `prices.toml`, overridden by a file of the installation.

Both files are TOML of one form:

    [models]
    "gpt-4o" = { prompt = 2.5, cached = 1.25, completion = 10 }

in US dollars for a million tokens; `cached`, for prompt tokens that the provider reads from its cache, may be left out.
The second is read again when it changes, so a new price applies from the next reply.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workers.errors import MissingPart
from workers.protocols import Price

DEFAULT_PRICES = Path(__file__).with_name("prices.toml")
EXAMPLE = '"gpt-4o" = { prompt = 2.5, cached = 1.25, completion = 10 }'


class PriceList(Mapping[str, Price]):
    """Model -> price. A lookup raises MissingPart, naming file and remedy, if the file is invalid."""

    def __init__(self, own: Path) -> None:
        """`own` is the installation's file, which may be missing."""
        self.own = own
        self._read: tuple[object, Mapping[str, Price]] = (None, {})
        """The file's state when it was read, and its prices: set together, since several threads ask."""

    def __getitem__(self, model: str) -> Price:
        return self._now()[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def _now(self) -> Mapping[str, Price]:
        # A file that is replaced has another inode, even with the same size and time
        try:
            found = self.own.stat()
            seen: object = (found.st_ino, found.st_size, found.st_mtime_ns)
        except OSError:
            seen = "absent"
        before, prices = self._read
        if seen != before:
            shipped = read_prices(DEFAULT_PRICES)
            own = {} if seen == "absent" else read_prices(self.own)
            # What the installation says replaces what is shipped, model by model
            prices = shipped | {model: _fill_cached(price, shipped.get(model)) for model, price in own.items()}
            self._read = (seen, prices)
        return prices


def read_prices(path: Path) -> dict[str, Price]:
    """Return the prices in a file. Raises MissingPart, naming what is wrong with it."""
    try:
        models = tomllib.loads(path.read_text(encoding="utf-8")).get("models", {})
        return {str(model): _price(path, model, entry) for model, entry in models.items()}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError) as error:
        raise MissingPart(
            f"The file of prices {path} cannot be read: {error}. Correct it: under [models] one line for each, as "
            f"{EXAMPLE}"
        ) from error


def _price(path: Path, model: str, entry: Any) -> Price:
    match entry:
        case {"prompt": int() | float() as prompt, "completion": int() | float() as completion}:
            cached = entry.get("cached", prompt)
            # NaN is refused too
            if isinstance(cached, int | float) and all(0 <= each < math.inf for each in (prompt, completion, cached)):
                return Price(float(prompt), float(completion), float(cached) if "cached" in entry else None)
    raise MissingPart(
        f"The file of prices {path} says {model!r} = {entry!r}. Write US dollars for a million tokens, as {EXAMPLE}"
    )


def _fill_cached(price: Price, shipped: Price | None) -> Price:
    """Return the price with that of cached tokens: if missing, the share that the provider is known to charge."""
    if price.cached is not None or shipped is None or shipped.cached is None or not shipped.prompt:
        return price
    return price._replace(cached=price.prompt * shipped.cached / shipped.prompt)
