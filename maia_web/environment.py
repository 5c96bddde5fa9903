"""Read variables of the environment as typed values. A bad value is an error that names it, and the remedy."""

from __future__ import annotations

import os
import re
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str = "") -> str:
    """Return the variable as it is; unset and empty are the same."""
    return os.environ.get(name) or default


def secret(name: str) -> str:
    """Return the variable, or the content of the file that NAME_FILE names, as container secrets are passed."""
    path = text(f"{name}_FILE")
    if not path or text(name):
        return text(name)
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE={path!r} cannot be read ({error.strerror}).") from None


def number(name: str, default: float, least: float = 0) -> float:
    """Read the variable as a number of at least `least`."""
    raw = text(name, str(default))
    try:
        value = float(raw)
    except ValueError:
        value = float("nan")
    # Written so that it also refuses nan, which compares as false.
    if not least <= value < float("inf"):
        raise ImproperlyConfigured(f"{name}={raw!r} is not a number of {least} or more. Unset it to get {default}.")
    return value


def switch(name: str, *, default: bool) -> bool:
    """Read the variable as yes or no."""
    raw = text(name, "yes" if default else "no").lower()
    if raw not in {"1", "0", "yes", "no", "true", "false"}:
        raise ImproperlyConfigured(f"{name}={raw!r} is neither yes nor no.")
    return raw in {"1", "yes", "true"}


def choice(name: str, default: str, among: tuple[str, ...]) -> str:
    """Read the variable as one of a few words, returned as they are defined; capitals do not matter."""
    value = text(name, default)
    found = next((word for word in among if word.lower() == value.lower()), None)
    if found is None:
        raise ImproperlyConfigured(f"{name}={value!r} is none of {', '.join(among)}.")
    return found


def device(name: str, default: str) -> str:
    """Read the variable as a device of PyTorch; the worker checks that it exists."""
    value = text(name, default)
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", value):
        raise ImproperlyConfigured(f"{name}={value!r} is none of auto, cpu, cuda, or one GPU of several as cuda:1.")
    return value


def prefix(name: str) -> str:
    """Read the variable as the path prefix of the site, such as /maia; "" for the root of its host."""
    value = text(name)
    if not re.fullmatch(r"((/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]+)+)?", value):
        raise ImproperlyConfigured(
            f"{name}={value!r} is no path below which the site can lie: it begins with /, does not end with one, and "
            "has letters, digits and - . _ ~ alone, with no part that is . or .. Write /maia, or unset it if the site "
            "has a host name of its own."
        )
    return value


def words(name: str, default: str = "") -> list[str]:
    """Read the variable as a comma-separated list."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]
