"""Sign in with an OpenID provider (`MAIA_OIDC_*`).

Authlib speaks the protocol: state, PKCE, nonce, keys and the ID token. Here are the settings that make it strict, and
the checks that it leaves to its caller: the provider's metadata name the issuer of the settings, the token is for this
site, and the user info is of the person whom the token names. `provisioning` decides about the person.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.django_client import DjangoOAuth2App, OAuth
from authlib.integrations.requests_client import OAuth2Session
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.exceptions import SessionInterrupted
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from joserfc.errors import JoseError
from requests import RequestException, Response

from experiments.accounts.provisioning import receive_identity, refuse
from experiments.models import Identity
from experiments.models.identity import MAX_SUBJECT

log = logging.getLogger(__name__)

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signatures that only the provider can make: none that use our own secret."""
LEEWAY = 60
"""Maximum difference between the provider's clock and ours, in seconds."""
PROVIDER_TIMEOUT = 5
"""Seconds that the provider may be silent before and within an answer."""
MAX_ANSWER = 1 << 20
"""Maximum bytes of an answer of the provider."""
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
KEPT = ("name", "preferred_username", "email", "email_verified")
"""The only claims that are stored, if they are text or booleans."""
MAX_CLAIM = 1000
"""Maximum characters of a claim that is stored: more than any address may have."""
MAX_STARTED = 10
"""Sign-ins that one browser may have started and not ended; the oldest are forgotten."""
STATE_TIMEOUT = 600
"""Seconds after which a started sign-in is forgotten."""
BROKEN = (
    AuthlibBaseError,
    JoseError,
    RequestException,
    RuntimeError,
    LookupError,
    AttributeError,
    TypeError,
    ValueError,
)
"""What Authlib raises if the provider's answers are not what they should be."""


class _Session(OAuth2Session):  # type: ignore[misc]
    """Authlib's session, for a provider that answers at its own addresses, and briefly."""

    def request(self, method: str, url: str, **options: Any) -> Response:
        """Return the whole answer. Raises ValueError for a redirect and for more than MAX_ANSWER."""
        # A redirect could carry the client's secret to another host
        options |= {"allow_redirects": False, "stream": True}
        response: Response = super().request(method, url, **options)
        if response.is_redirect:
            raise ValueError(f"{url} redirects to {response.headers['Location']}. The provider must name that address.")
        body = bytearray()
        for part in response.iter_content(1 << 16):
            body += part
            if len(body) > MAX_ANSWER:
                raise ValueError(f"{url} answers with more than {MAX_ANSWER} bytes.")
        # The body was read in pieces, so `requests` would otherwise find the stream used up.
        response._content = bytes(body)
        return response


class _Client(DjangoOAuth2App):  # type: ignore[misc]
    client_cls = _Session


def is_on() -> bool:
    """True if a provider is configured."""
    return bool(settings.OIDC_ISSUER and settings.OIDC_CLIENT_SECRET)


def label() -> str:
    """Return the provider's name on pages; "" if there is none."""
    return str(settings.OIDC_NAME) if is_on() else ""


def name() -> str:
    """Return the name under which identities of this provider are stored: another issuer's people are other people."""
    return f"oidc-{hashlib.sha256(settings.OIDC_ISSUER.encode()).hexdigest()[:16]}"


def start_sign_in(request: HttpRequest, data: dict[str, Any], next_url: str = "") -> str | HttpResponse:
    """Return the provider's address for the browser; if the provider does not answer, a page that says why.

    `data` comes back to `provisioning` with the person.
    """
    back = request.build_absolute_uri(reverse("sign-in-back"))
    client = _build_client()
    try:
        _load_metadata(client)
        started = client.create_authorization_url(back)
    except BROKEN as error:
        return _refuse_unreachable(request, error)
    for key in [each for each, _ in request.session.items() if each.startswith("_state_")][: 1 - MAX_STARTED]:
        del request.session[key]
    url = started.pop("url")
    client.save_authorize_data(request, redirect_uri=back, data=data, next=next_url, **started)
    return str(url)


def complete_sign_in(request: HttpRequest) -> HttpResponse:
    """Return the response for a browser that returns from the provider."""
    client, state = _build_client(), request.GET.get("state", "")
    # 1. The sign-in that this browser began.
    client.framework.clear_state_data(request.session, "")  # forgets those that are too old
    started = client.framework.get_state_data(request.session, state)
    if started is None:
        return _refuse_return(request)
    try:
        _load_metadata(client)
    except BROKEN as error:
        return _refuse_unreachable(request, error)
    # 2. What the provider says of the person.
    _remove_state(request, client, state, started)
    try:
        claims = _verify_claims(client, request)
    except BROKEN as error:
        # Authlib keeps the state if the provider reports an error; it is for one return only
        client.framework.clear_state_data(request.session, state)
        cancelled = request.GET.get("error") == "access_denied"
        return _refuse_cancelled(request) if cancelled else _refuse_claims(request, error)
    # 3. The identity, with its newest claims. Only the subject never changes.
    key = {"provider": name(), "subject": claims["sub"]}
    kept = {each: _storable(claims[each]) for each in KEPT if isinstance(claims.get(each), str | bool)}
    Identity.objects.filter(**key).update(claims=kept)
    return receive_identity(request, Identity.objects.filter(**key).first() or Identity(**key, claims=kept), started)


def _build_client() -> DjangoOAuth2App:
    """Return Authlib's client, which knows nothing of the provider yet."""
    client = OAuth().register(
        "provider",
        client_cls=_Client,
        client_id=settings.OIDC_CLIENT_ID,
        client_secret=settings.OIDC_CLIENT_SECRET,
        server_metadata_url=f"{settings.OIDC_ISSUER}/.well-known/openid-configuration",
        client_kwargs={
            "scope": "openid profile email",
            "code_challenge_method": "S256",
            "default_timeout": PROVIDER_TIMEOUT,
        },
    )
    client.framework.expires_in = STATE_TIMEOUT
    return client


def _load_metadata(client: DjangoOAuth2App) -> None:
    """Ask the provider for its addresses. Raises one of BROKEN if these are wrong."""
    metadata = client.load_server_metadata()
    if str(metadata.get("issuer")).rstrip("/") != settings.OIDC_ISSUER:
        raise ValueError(f"The provider calls itself {metadata.get('issuer')!r}, not {settings.OIDC_ISSUER!r}.")
    addresses = {each: metadata[each] for each in (*ENDPOINTS, "userinfo_endpoint") if each in metadata}
    scheme = settings.OIDC_ISSUER.partition("://")[0]
    wrong = [each for each in {*ENDPOINTS, *addresses} if not str(addresses.get(each)).startswith(f"{scheme}://")]
    if wrong:
        raise ValueError(f"The provider does not name its {', '.join(sorted(wrong))}, or not with {scheme}.")
    methods = metadata.get("token_endpoint_auth_methods_supported", [])
    # Most providers accept both; a few only the header.
    basic = "client_secret_basic" in methods and "client_secret_post" not in methods
    client.client_kwargs["token_endpoint_auth_method"] = "client_secret_basic" if basic else "client_secret_post"
    # Authlib takes options of its session, such as `verify`, from other names of the metadata
    client.server_metadata = addresses | {
        "issuer": metadata["issuer"],
        "id_token_signing_alg_values_supported": ALGORITHMS,
        "_loaded_at": metadata["_loaded_at"],
    }


def _remove_state(request: HttpRequest, client: DjangoOAuth2App, state: str, started: dict[str, Any]) -> None:
    """Remove the state from the stored session, before the provider takes its time. A second return finds none."""
    client.framework.clear_state_data(request.session, state)
    try:
        request.session.save()
    except UpdateError as error:
        raise SessionInterrupted("Another request ended the session in which this sign-in began.") from error
    client.framework.set_state_data(request.session, state, started)  # here alone, until Authlib has checked it


def _verify_claims(client: DjangoOAuth2App, request: HttpRequest) -> dict[str, Any]:
    """Return what the provider tells of the person. Raises one of BROKEN unless it answers this browser's request."""
    audience = {"essential": True, "value": settings.OIDC_CLIENT_ID}
    issuer = {"essential": True, "value": client.server_metadata["issuer"]}
    token = client.authorize_access_token(request, claims_options={"iss": issuer, "aud": audience}, leeway=LEEWAY)
    claims = dict(token["userinfo"])
    if not (0 < len(claims["sub"]) <= MAX_SUBJECT and claims["sub"].isprintable()):
        raise ValueError("The token names no user.")
    if "email" not in claims and "userinfo_endpoint" in client.server_metadata:
        profile = client.userinfo(token=token)
        if profile.get("sub") != claims["sub"]:
            raise ValueError("What the provider tells is of another person than the token.")
        claims.pop("email_verified", None)  # says nothing of an address that is named elsewhere
        # Later ones win: what the signed token says.
        claims = {**profile, **claims}
    return claims


def _storable(value: str | bool) -> str | bool:
    """Return what every database can store: PostgreSQL refuses zeros and halves of characters."""
    if isinstance(value, bool):
        return value
    return value.encode(errors="replace").decode().replace("\0", "\ufffd")[:MAX_CLAIM]


def _log(error: Exception) -> None:
    """Log an error on one line: its text may come from the provider, or from a made-up address."""
    log.warning("Single sign-on failed: %s: %.500r", type(error).__name__, str(error))


def _refuse_unreachable(request: HttpRequest, error: Exception) -> HttpResponse:
    _log(error)
    words = (
        f"{settings.OIDC_NAME} does not answer, or not as it should. Try again in a moment; if it stays so, "
        "tell an admin of your team: the web's log says more."
    )
    return refuse(request, "You could not be signed in", words, 502)


def _refuse_claims(request: HttpRequest, error: Exception) -> HttpResponse:
    _log(error)
    words = (
        f"{settings.OIDC_NAME} did not confirm who you are. Begin again from the sign-in page; if it stays so, "
        "tell an admin of your team: the web's log says more."
    )
    return refuse(request, "You could not be signed in", words)


def _refuse_cancelled(request: HttpRequest) -> HttpResponse:
    return refuse(request, "You were not signed in", f"You cancelled at {settings.OIDC_NAME}. Nothing was changed.")


def _refuse_return(request: HttpRequest) -> HttpResponse:
    words = (
        f"What came back from {settings.OIDC_NAME} does not belong to a sign-in that this browser began, "
        "or is too old. Begin again from the sign-in page."
    )
    return refuse(request, "You could not be signed in", words)
