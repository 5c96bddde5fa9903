"""Decide what happens with an identity from single sign-on: a known person, one who connects it to their account,
or a new person.

An identity is never matched to an account by e-mail address: a person who can write an address into either system
could take over the account. Users connect the two while signed in.
"""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings
from django.contrib.auth import login as sign_in
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from experiments.accounts import names
from experiments.accounts.actions import admit
from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.models import Identity, Invitation, Member, Role


def receive_identity(request: HttpRequest, identity: Identity, started: dict[str, Any]) -> HttpResponse:
    """Return the page for the identity. It continues what the browser started: `connect`, `join` or nothing."""
    began = started["data"]
    known = identity.user if identity.pk else None
    if "connect" in began:
        return connect(request, identity, known, began["connect"])
    invitation = Invitation.objects.filter(pk=began.get("join", 0)).first()
    try:
        with transaction.atomic():
            person = known or _create_account(request, identity, invitation)
            if isinstance(person, HttpResponse):
                return person
            # Sign a person in, and use the invitation that they came with
            if not person.is_active:
                return refuse(
                    request,
                    "Your account is closed",
                    "This account was deactivated. Ask an admin of your team, who can open it again.",
                )
            if invitation is not None:
                admit(Actor.behind(request, person), invitation)
            # Last, so that a session is never of a person whose account or role was rolled back
            request.came_by = "single sign-on"  # type: ignore[attr-defined]
            sign_in(request, person)
            if not Member.objects.filter(user=person).exists():
                return render(request, "accounts/no_role.html")
            return redirect(started["next"] or "overview")
    # Another request made the same account or connection at this moment.
    except IntegrityError:
        return _refuse_interrupted(request)


def connect(request: HttpRequest, identity: Identity, known: User | None, user_id: Any) -> HttpResponse:
    """Add the identity to the account of the signed-in user, as a way to sign in."""
    user = request.user
    if not isinstance(user, User) or user.pk != user_id:
        return _refuse_interrupted(request)
    if known is not None and known != user:
        return refuse(
            request,
            "Already connected",
            f"This identity of {settings.OIDC_NAME} is connected to another account of the team. Nothing was changed.",
        )
    if known is None:
        identity.user = user
        try:
            with transaction.atomic():
                identity.save()
                audit.record(request, Verb.SIGN_ON_CONNECTED, user)
        except IntegrityError:
            return _refuse_interrupted(request)
    return redirect("settings-you")


def _create_account(request: HttpRequest, identity: Identity, invitation: Invitation | None) -> User | HttpResponse:
    """Create an account for an identity, with the role for new people; or return a page that says why not."""
    claims = identity.claims
    email = _get_verified_email(claims)
    invited = invitation is not None and invitation.state == "open"
    ours = {domain.casefold().lstrip("@") for domain in settings.OIDC_DOMAINS}
    if ours and not invited and email.rpartition("@")[2].casefold() not in ours:
        return refuse(
            request,
            "You are not expected here",
            f"Only people with a verified e-mail address at {' or '.join(settings.OIDC_DOMAINS)} come in by "
            "themselves. An admin of the team can send you an invitation.",
        )
    if email and User.objects.filter(email__iexact=email).exists():
        return refuse(
            request,
            "This e-mail address has an account",
            f"An account of this team has your e-mail address already, and {settings.OIDC_NAME} was never connected to "
            "it. If it is yours, sign in as you do otherwise, and connect the two under Settings, You.",
        )
    person = User(
        username=names.find_free_name(_propose_name(claims)),
        email=email,
        first_name=names.clean_name(str(claims.get("name", ""))),
    )
    person.set_unusable_password()
    person.save()
    identity.user = person
    identity.save()
    if settings.OIDC_ROLE != "none" and not invited:
        role, actor = Role[settings.OIDC_ROLE.upper()], Actor.behind(request, person)
        Member.objects.create(user=person, role=role)
        audit.record(actor, Verb.PERSON_ADMITTED, person, role=role.label, by="single sign-on")
    return person


def _get_verified_email(claims: dict[str, Any]) -> str:
    """Return the address if the provider has verified it; else ""."""
    email = claims.get("email")
    # Some providers send the text "true".
    if not isinstance(email, str) or claims.get("email_verified") not in (True, "true") or len(email) > 254:
        return ""
    try:
        validate_email(email)
    except ValidationError:
        return ""
    return email


def _propose_name(claims: dict[str, Any]) -> str:
    """Return the provider's name for the person, as far as a user name allows."""
    for key in ("preferred_username", "email", "name"):
        found = re.sub(r"[^\w.+-]+", "-", str(claims.get(key, "")).partition("@")[0]).strip("-")
        if found:
            return found
    return "newcomer"


def refuse(request: HttpRequest, title: str, words: str, status: int = 403) -> HttpResponse:
    """Show why a person from single sign-on is not let in, with the remedy."""
    return render(request, "accounts/refused.html", {"title": title, "words": words}, status=status)


def _refuse_interrupted(request: HttpRequest) -> HttpResponse:
    words = "Something else happened at the same moment: you signed out, or came twice. Begin again."
    return refuse(request, "You could not be signed in", words, 409)
