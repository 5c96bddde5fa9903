"""Slow down password guessing: after a few free attempts, each further one must wait twice as long as the one before.

Attempts are counted in the database, so that the limit holds for all processes and without Redis. Counted together are
attempts

- on one account from one address: a typing error costs seconds, guessing soon costs a quarter of an hour;
- from one address, on any account: against trying many names;
- on one account, from any address: against guessing from many machines.

An attempt counts before the password is checked, so that a thousand at the same moment cannot pass; a successful one is
subtracted again. A refused attempt is not checked and prolongs nothing: no attacker can block an account for longer
than `MAX_WAIT`. A browser in which the person signed in before has a signed cookie, and its attempts are counted
separately: it may sign in, whatever others do.

Unknown names are counted like known ones, so that the wait does not reveal which names exist.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_network
from math import ceil
from secrets import token_urlsafe
from unicodedata import normalize

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Greatest
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.timezone import now as clock

from experiments.core import client_ip
from experiments.models import SignInAttempts

FREE = {"both": 5, "browser": 5, "address": 30, "account": 100}
"""Attempts of each kind without a wait."""
MAX_WAIT = timedelta(minutes=15)
FORGET = timedelta(hours=24)
"""The count restarts after this long without attempts."""
MAX_NAME = 150
"""Maximum characters of a user name."""
COOKIE, SALT, COOKIE_DAYS = "maia_known", "experiments.accounts.throttle", 180
NETWORK = {4: 32, 6: 64}
"""Leading bits of an address that one visitor cannot choose."""


@dataclass(frozen=True)
class Try:
    """One attempt, and how it is counted: pairs of key and kind."""

    keys: tuple[tuple[str, str], ...]
    wait: int
    """Seconds to wait before the next; 0 if this one may continue."""


def start_try(request: HttpRequest, name: str) -> Try:
    """Count an attempt to sign in as `name`, unless it comes too early: then its `wait` is above 0."""
    account = _normalize_name(name)
    known = _browser_of(request, account)
    address = origin(request)
    keys = [("both", f"{account}\n{address}"), ("account", account), *([("address", address)] if address else [])]
    if known:
        keys = [("browser", known)]
    return count(tuple((digest(kind, what), kind) for kind, what in keys))


def _normalize_name(name: str) -> str:
    """Normalize a user name: spellings that the sign-in form accepts for one name, and more, become equal."""
    return normalize("NFKC", name.strip()).strip().casefold()[:MAX_NAME]


def begin_again(user: User) -> Try:
    """Count an attempt by a signed-in user to enter their own password, as before a new one is set."""
    return count(((digest("again", str(user.pk)), "browser"),))


def origin(request: HttpRequest) -> str:
    """Return the network that the request comes from; "" if unknown."""
    found = client_ip.address(request)
    if found is None:
        return ""
    return str(ip_network(f"{found}/{NETWORK[6 if ':' in found else 4]}", strict=False))


def digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()


def count(keys: tuple[tuple[str, str], ...]) -> Try:
    """Count one more attempt under each key; none if one of them is blocked. Refusing writes nothing."""
    now = clock()
    if wait := _longest_wait(SignInAttempts.objects.filter(key__in=dict(keys)), now):
        return Try(keys, wait)
    SignInAttempts.objects.filter(last__lt=now - FORGET).delete()
    with transaction.atomic():
        fresh = [SignInAttempts(key=key, last=now, until=now) for key, _ in sorted(keys)]
        SignInAttempts.objects.bulk_create(fresh, ignore_conflicts=True)
        # Locked in the order of keys: two attempts at the same moment do not deadlock
        rows = SignInAttempts.objects.select_for_update().filter(key__in=dict(keys)).order_by("key")
        wait = _longest_wait(rows, now)  # checked again: many may have come at the same moment
        for row in rows if not wait else ():
            row.count, row.last = row.count + 1, now
            beyond = row.count - FREE[dict(keys)[row.key]]
            # The exponent is bounded, since a count may be large; `MAX_WAIT` bounds the wait
            seconds = 2 ** min(beyond - 1, 20) if beyond > 0 else 0
            row.until = now + min(timedelta(seconds=seconds), MAX_WAIT)
            row.save()
    return Try(keys, wait)


def _longest_wait(rows: Iterable[SignInAttempts], now: datetime) -> int:
    """Return the seconds until none of them is blocked."""
    return max((max(0, ceil((row.until - now).total_seconds())) for row in rows), default=0)


@transaction.atomic
def clear_tries(tried: Try) -> None:
    """Clear the person's own count after a success, and subtract this attempt from shared counts."""
    own = [key for key, kind in tried.keys if kind in {"both", "browser"}]
    shared = [key for key, kind in tried.keys if kind not in {"both", "browser"}]
    SignInAttempts.objects.filter(key__in=own).delete()
    less = Greatest(F("count"), Value(1)) - 1
    SignInAttempts.objects.filter(key__in=shared).update(count=less, until=clock())


# --- browsers with which the person signed in before ---


def _browser_of(request: HttpRequest, account: str) -> str:
    """Return the browser's id, if its cookie says that it signed in to this account; else ""."""
    try:
        cookie = request.get_signed_cookie(COOKIE, default="", salt=SALT, max_age=COOKIE_DAYS * 86400)
    except signing.BadSignature:
        return ""
    return cookie if cookie and cookie.partition(":")[0] == digest("account", account) else ""


def remember(response: HttpResponse, name: str) -> None:
    """Give the browser that just signed in the cookie."""
    response.set_signed_cookie(
        COOKIE,
        f"{digest('account', _normalize_name(name))}:{token_urlsafe(12)}",
        salt=SALT,
        max_age=COOKIE_DAYS * 86400,
        httponly=True,
        secure=settings.HTTPS,
        samesite="Lax",
        path=reverse("sign-in"),
    )
