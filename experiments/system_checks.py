"""System checks of settings that contradict each other or this machine. `manage.py check`, `up` and `migrate` run them.

They do not check that Redis or the database answers, because these may start later.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register

from experiments.core.otel_package import explain_missing_package


@register(Tags.security)
def production_has_its_own_key(**_: Any) -> list[CheckMessage]:
    """Warn behind HTTPS if the secret key is a local file: several processes or machines must share one key."""
    if not settings.HTTPS or os.environ.get("MAIA_SECRET_KEY") or os.environ.get("MAIA_SECRET_KEY_FILE"):
        return []
    words = "MAIA_HTTPS is on, and the secret key comes from a file in the state folder."
    hint = "Set MAIA_SECRET_KEY to the same long random text for every process."
    return [checks.Warning(words, hint=hint, id="maia.W001")]


@register(Tags.security)
def production_shows_no_debug_pages(**_: Any) -> list[CheckMessage]:
    """Refuse debug pages behind HTTPS, because they show settings and source code on every error."""
    if not (settings.HTTPS and settings.DEBUG):
        return []
    return [Error("MAIA_HTTPS and MAIA_DEBUG are both on.", hint="Unset MAIA_DEBUG.", id="maia.E001")]


@register(Tags.files)
def state_folder_can_be_written(**_: Any) -> list[CheckMessage]:
    """Check that the state folder, with images and the SQLite database, can be written to."""
    state: Path = settings.STATE
    nearest = next(folder for folder in [state, *state.parents] if folder.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return []
    hint = "Set MAIA_STATE to a folder that this user may write to."
    return [Error(f"The state folder {state} cannot be written.", hint=hint, id="maia.E002")]


@register(Tags.security)
def state_folder_is_private(**_: Any) -> list[CheckMessage]:
    """Warn if other users can read the state folder: it holds sessions with which they could sign in."""
    state: Path = settings.STATE
    if not state.is_dir() or not state.stat().st_mode & 0o007:
        return []
    words = f"Every user of this machine can look into the state folder {state}."
    return [checks.Warning(words, hint=f"Run: chmod 700 {state}", id="maia.W007")]


@register
def worker_has_a_thread(**_: Any) -> list[CheckMessage]:
    """Refuse zero worker threads: no run would ever be executed."""
    if settings.WORKER_THREADS >= 1:
        return []
    return [Error("MAIA_WORKER_THREADS is 0.", hint="Set it to 1 or more, or unset it.", id="maia.E003")]


@register
def sessions_last(**_: Any) -> list[CheckMessage]:
    """Refuse session lengths below a minute: users could not stay signed in."""
    if settings.SESSION_COOKIE_AGE >= 60 and settings.SESSION_LENGTH >= 60:
        return []
    hint = "Set MAIA_SESSION_IDLE_HOURS and MAIA_SESSION_DAYS to a minute or more, or unset them."
    return [Error("Sessions would end as soon as they begin.", hint=hint, id="maia.E004")]


@register(Tags.security)
def single_sign_on_is_whole(**_: Any) -> list[CheckMessage]:
    """Warn about incomplete single sign-on. It is only a warning, because workers need no secret of the provider."""
    if not settings.OIDC_ISSUER:
        return []
    found: list[CheckMessage] = []
    if not settings.OIDC_CLIENT_SECRET:
        words = "MAIA_OIDC_ISSUER is set and MAIA_OIDC_CLIENT_SECRET is not: this process offers no single sign-on."
        found.append(checks.Warning(words, hint="Only the web process needs it.", id="maia.W004"))
    if settings.OIDC_ROLE != "none" and not settings.OIDC_DOMAINS:
        words = f"Every user with an account at {settings.OIDC_ISSUER} joins the team as {settings.OIDC_ROLE}."
        hint = "Set MAIA_OIDC_DOMAINS, unless all of them belong to you."
        found.append(checks.Warning(words, hint=hint, id="maia.W005"))
    return found


@register(Tags.security)
def visitors_are_told_apart(**_: Any) -> list[CheckMessage]:
    """Warn about an uncounted proxy: all visitors would share one address and one counter of failed sign-ins."""
    if not settings.HTTPS or settings.TRUSTED_PROXIES:
        return []
    words = "MAIA_HTTPS is on, and MAIA_TRUSTED_PROXIES is 0: all visitors seem to come from the proxy's address."
    return [checks.Warning(words, hint="Set it to the number of your proxies.", id="maia.W006")]


@register
def spans_have_their_package(**_: Any) -> list[CheckMessage]:
    """Warn if the package for spans is missing. It is only a warning, because only workers send spans."""
    problem = explain_missing_package()
    return [checks.Warning(problem, hint="Only workers need it.", id="maia.W008")] if problem else []
