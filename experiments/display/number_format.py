"""Format numbers for pages: counts, bytes, durations, times, dollars, shares."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from workers.record.figures import MINUS
from workers.record.functions import read_number

UNITS_OF_TIME = ((86400, "day"), (3600, "hour"), (60, "minute"))


def compact(value: float | None) -> str:
    """Format a count in few characters: 950, 18.2k, 1M."""
    number = float(value or 0)
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.1f}".removesuffix(".0") + name
    return f"{number:g}"


def size(count: float | None) -> str:
    """Format bytes of memory: 12 kB, 3.4 MB, 120 MB, 1.25 GB; steps of 1,024."""
    value = float(count or 0)
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if value >= unit:
            share = value / unit
            # Three digits in all, which is as exact as memory is read.
            digits = 0 if share >= 100 or name == "kB" else 1 if share >= 10 or name == "MB" else 2
            return f"{share:.{digits}f} {name}"
    return f"{value:.0f} bytes"


def clock(seconds: float | None) -> str:
    """Format a duration as a clock: 0:48 or 1:02:03."""
    whole = int(seconds or 0)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def duration(seconds: float | None) -> str:
    """Format a duration in words: 0.8 s, 42 s, 3 min 5 s."""
    value = float(seconds or 0)
    if value < 10:
        return f"{value:.1f} s"
    if value < 60:
        return f"{value:.0f} s"
    hours, minutes = int(value) // 3600, int(value) // 60 % 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {int(value) % 60} s"


def ago(time: datetime | None) -> str:
    """Format how long ago, to one unit; "" if unknown."""
    if time is None:
        return ""
    seconds = (timezone.now() - time).total_seconds()
    for unit, name in UNITS_OF_TIME:
        if seconds >= unit:
            count = int(seconds // unit)
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"


def timestamp(time: datetime) -> str:
    """Format a day and a time as 5 Nov 2026, 14:03; the same as `date` with "j M Y, H:i", but faster."""
    # The day apart: `%d` has a leading zero.
    return f"{time.day} {time:%b %Y, %H:%M}"


def thousands(count: int) -> str:
    """Format 12340 as 12,340."""
    return f"{count:,}"


def dollars(value: float | None) -> str:
    """Format an amount of money, with four decimals below a cent. None is an unknown amount."""
    if value is None:
        return "price unknown"
    amount = float(value or 0)
    return f"${amount:.4f}" if 0 < amount < 0.01 else f"${amount:.2f}"


def shorten_value(text: str) -> str:
    """Format a JSON number with six digits and a real minus sign; return anything else unchanged."""
    value = read_number(text)
    return text if value is None else f"{value:.6g}".replace("-", MINUS)


def count_noun(count: int, noun: str) -> str:
    """Format a count with its noun: `3|count_noun:"image"` is "3 images"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def percent(value: float | None) -> str:
    """Format a share of 1 in per cent, with a decimal."""
    return f"{100 * float(value or 0):.1f} %"


def share(value: float | None) -> str:
    """Format a share of 1 in per cent; a small one is not written as 0."""
    percent = 100 * float(value or 0)
    return "under 1 %" if 0 < percent < 1 else f"{percent:.0f} %"
