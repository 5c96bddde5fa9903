"""Sign in with an OpenID provider (`MAIA_OIDC_*`): allauth speaks the protocol, and this module makes it strict.

Beyond allauth, it verifies the ID token's signature although the token comes directly from the provider, and with
it issuer, audience, nonce and age. The user info must be of the person whom the token names. allauth's pages are
not used: `provisioning` decides about an identity.
"""

from __future__ import annotations

import hashlib
import logging
from secrets import token_urlsafe
from typing import Any, Never

import jwt
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.crypto import salted_hmac
from requests import RequestException

from experiments.accounts.provisioning import receive_identity, refuse

log = logging.getLogger(__name__)

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signatures that only the provider can make: none that use our own secret."""
MAX_SUBJECT = 191
"""Maximum characters that the column holds."""
LEEWAY = 60
"""Maximum difference between the provider's clock and ours, in seconds."""
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
KEPT = ("name", "preferred_username", "email", "email_verified")
"""The only user info fields that are stored."""


def is_on() -> bool:
    """True if a provider is configured."""
    return bool(settings.OIDC_ISSUER and settings.OIDC_CLIENT_SECRET)


def label() -> str:
    """Return the provider's name on pages; "" if there is none."""
    return str(settings.OIDC_NAME) if is_on() else ""


def start_sign_in(request: HttpRequest, data: dict[str, Any], next_url: str = "") -> str | HttpResponse:
    """Return the provider's address for the browser; if the provider does not answer, a page that says why.

    `data` comes back to `provisioning` with the person.
    """
    state = token_urlsafe(24)
    try:
        response = Provider(request, app()).redirect(
            request, "login", next_url=next_url, data=data, state_id=state, auth_params={"nonce": _nonce_of(state)}
        )
    except (OAuth2Error, RequestException) as error:
        return _refuse_unreachable(request, error)
    return str(response["Location"])


def come_back(request: HttpRequest) -> HttpResponse:
    """Return the response for a browser that returns from the provider."""
    try:
        return OAuth2CallbackView.adapter_view(Connection(request, name()))(request)
    except (OAuth2Error, RequestException) as error:
        return _refuse_unreachable(request, error)


def _refuse_unreachable(request: HttpRequest, error: Exception) -> HttpResponse:
    log.warning("Single sign-on broke off: %s", error)
    words = (
        f"{settings.OIDC_NAME} does not answer, or not as it should. Try again in a moment; if it stays so, "
        "tell an admin of your team: the web's log says more."
    )
    return refuse(request, "You could not be signed in", words, 502)


def name() -> str:
    """Return the name under which accounts of this provider are stored: another issuer's people are other people."""
    return f"oidc-{hashlib.sha256(settings.OIDC_ISSUER.encode()).hexdigest()[:16]}"


def app() -> SocialApp:
    """Return the provider from the settings; nothing of it is in the database."""
    return SocialApp(
        provider="openid_connect",
        provider_id=name(),
        name=settings.OIDC_NAME,
        client_id=settings.OIDC_CLIENT_ID,
        secret=settings.OIDC_CLIENT_SECRET,
        settings={"server_url": settings.OIDC_ISSUER, "oauth_pkce_enabled": True},
    )


def _nonce_of(state: str) -> str:
    """Return what the token must repeat, to prove that it answers the request of this browser."""
    return salted_hmac("experiments.accounts.nonce", state).hexdigest()


class Connection(OpenIDConnectOAuth2Adapter):
    """One exchange with the provider. Raises OAuth2Error or RequestException for invalid answers."""

    @property
    def openid_config(self) -> dict[str, Any]:
        if not hasattr(self, "found"):
            # The provider's metadata, if complete and of the issuer in the settings
            config = self.fetch(f"{settings.OIDC_ISSUER}/.well-known/openid-configuration")
            missing = [each for each in ENDPOINTS if not isinstance(config.get(each), str)]
            if missing:
                raise OAuth2Error(f"The provider does not name its {', '.join(missing)}.")
            if str(config.get("issuer")).rstrip("/") != settings.OIDC_ISSUER:
                raise OAuth2Error(f"The provider calls itself {config.get('issuer')!r}, not {settings.OIDC_ISSUER!r}.")
            self.found = config
        return self.found

    def get_provider(self) -> Provider:
        return Provider(self.request, app())

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:  # noqa: ARG002 - allauth's signature
        return request.build_absolute_uri(reverse("sign-in-back"))

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> SocialLogin:  # noqa: ARG002
        """Return the login of the person whom the provider names, not saved."""
        claims = self.verified(str(kwargs["response"].get("id_token", "")), _nonce_of(request.GET["state"]))
        if "email" not in claims and "userinfo_endpoint" in self.openid_config:
            profile = self.fetch(self.profile_url, {"Authorization": f"Bearer {token.token}"})
            if profile.get("sub") != claims["sub"]:
                raise OAuth2Error("What the provider tells is of another person than the token.")
            claims = {**profile, **claims}
        account = SocialAccount(
            provider=name(), uid=claims["sub"], extra_data={k: claims[k] for k in KEPT if k in claims}
        )
        return SocialLogin(provider=self.get_provider(), account=account, user=User())

    def verified(self, id_token: str, nonce: str) -> dict[str, Any]:
        """Return the token's verified claims."""
        try:
            claims = jwt.decode(
                id_token,
                self.key_of(id_token),
                algorithms=ALGORITHMS,
                audience=settings.OIDC_CLIENT_ID,
                issuer=self.openid_config["issuer"],
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, TypeError, ValueError) as error:
            raise OAuth2Error(f"The token is no good: {error}") from error
        if not 0 < len(claims["sub"]) <= MAX_SUBJECT:
            raise OAuth2Error("The token names no user.")
        if claims.get("nonce") != nonce or claims.get("azp", settings.OIDC_CLIENT_ID) != settings.OIDC_CLIENT_ID:
            raise OAuth2Error("The token answers a request that was not this one.")
        return claims

    def key_of(self, id_token: str) -> Any:
        """Return the provider's key with which the token says it was signed."""
        wanted = jwt.get_unverified_header(id_token).get("kid")
        for key in jwt.PyJWKSet.from_dict(self.fetch(self.openid_config["jwks_uri"])).keys:
            if wanted in (None, key.key_id):
                return key.key
        raise OAuth2Error("The token was signed with a key that the provider does not have.")

    def fetch(self, url: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON object at an address."""
        with Adapter(self.request).get_requests_session() as session:
            response = session.get(url, headers=headers)
            response.raise_for_status()
            found = response.json()
        if not isinstance(found, dict):
            raise OAuth2Error(f"{url} answers with something else than an object.")
        return found


class Provider(OpenIDConnectProvider):
    """Our subclass, so that exchanges are strict."""

    oauth2_adapter_class = Connection


class Adapter(DefaultSocialAccountAdapter):
    """Decisions that allauth asks for (`SOCIALACCOUNT_ADAPTER`)."""

    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> Provider:  # noqa: ARG002
        return Provider(request, app())

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> Never:
        raise ImmediateHttpResponse(receive_identity(request, sociallogin))

    def on_authentication_error(self, request: HttpRequest, provider: Any, **details: Any) -> Never:  # noqa: ARG002
        log.warning("Single sign-on failed (%s): %s", details.get("error"), details.get("exception"))
        title, words = (
            "You could not be signed in",
            f"What came back from {settings.OIDC_NAME} does not belong to a sign-in that this browser began, "
            "or is too old. Begin again from the sign-in page.",
        )
        if str(details.get("error")) == "cancelled":
            title = "You were not signed in"
            words = f"You cancelled at {settings.OIDC_NAME}. Nothing was changed."
        raise ImmediateHttpResponse(refuse(request, title, words))
