"""Single sign-on with a provider whose answers are odd, and what the log and a stored session keep of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.exceptions import SessionInterrupted
from django.db.models.signals import post_save
from django.test import Client, RequestFactory

from experiments.accounts import single_sign_on
from experiments.models import Identity, Session
from tests.support.openid_provider import Provider, query_of
from tests.support.single_sign_on import come, leave, way_back, who

pytestmark = pytest.mark.django_db


@contextmanager
def stored_sessions() -> Iterator[list[dict[str, Any]]]:
    """What is stored of sessions, as it goes."""
    found: list[dict[str, Any]] = []

    def note(instance: Session, **_: Any) -> None:
        found.append(instance.get_decoded())

    post_save.connect(note, sender=Session)
    try:
        yield found
    finally:
        post_save.disconnect(note, sender=Session)


# --- the state ---


def test_a_look_ahead_does_not_use_up_the_state(client: Client, provider: Provider) -> None:
    back = way_back(client, provider)
    assert client.head(back).status_code == 405
    client.get(back)
    assert who(client) == "newcomer"


def test_the_state_is_gone_before_the_token_is_asked_for(client: Client, provider: Provider) -> None:
    back = way_back(client, provider)
    kept = f"_state_provider_{query_of(back)['state']}"
    assert kept in dict(client.session.items())
    with stored_sessions() as stored:
        then: list[dict[str, Any]] = []
        provider.change = lambda claims: then.extend(stored) or claims  # type: ignore[func-returns-value]
        client.get(back)
    assert len(then) == 1
    assert kept not in then[0]
    assert kept not in dict(client.session.items())


def test_a_session_that_another_request_ended(client: Client, provider: Provider, rf: RequestFactory) -> None:
    request = rf.get(back := way_back(client, provider))
    request.session, request.user = client.session, AnonymousUser()
    assert request.session.keys()  # read, as the middleware does
    Session.objects.all().delete()
    with pytest.raises(SessionInterrupted):
        single_sign_on.complete_sign_in(request)
    assert query_of(back)["code"] in provider.asked


def test_connecting_is_for_the_person_who_began_it(as_owner: Client, teammate: User, provider: Provider) -> None:
    back = provider.authorize(query_of(leave(as_owner, "/settings/you/connect/"))).replace("http://testserver", "")
    session = as_owner.session
    session[f"_state_provider_{query_of(back)['state']}"]["data"]["data"]["connect"] = teammate.pk
    session.save()
    assert as_owner.get(back).status_code == 409
    assert not Identity.objects.exists()


def test_a_strangers_return_does_not_reach_the_provider(client: Client, provider: Provider) -> None:
    provider.down = True  # else 502
    assert client.get("/sign-in/back/?code=x&state=y").status_code == 403


# --- answers ---


def test_the_secret_does_not_follow_a_redirect(client: Client, provider: Provider) -> None:
    provider.redirects = True
    assert come(client, provider).status_code == 403
    assert provider.asked, "another address was asked"


@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_an_answer_without_end_is_not_read(client: Client, provider: Provider, size: int) -> None:
    provider.change_answer = lambda answer: {**answer, "more": "x" * size}
    come(client, provider)
    assert who(client) == ("newcomer" if size == 1000 else "")


@pytest.mark.parametrize(
    "wrong",
    [
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": "file:///etc/passwd"},
        {"userinfo_endpoint": None},
    ],
)
def test_an_address_of_another_kind(client: Client, provider: Provider, wrong: dict[str, Any]) -> None:
    provider.change_config = lambda config: {**config, **wrong}
    answer = client.post("/sign-in/with/")
    assert answer.status_code == 502
    assert "alert" not in answer.content.decode()


def test_the_provider_does_not_set_options_of_ours(client: Client, provider: Provider) -> None:
    options = {"code_challenge_method": None, "scope": "all", "default_timeout": None, "jwks": {"keys": []}}
    provider.change_config = lambda config: {**config, **options}
    asked = query_of(leave(client))
    assert (asked["code_challenge_method"], asked["scope"]) == ("S256", "openid profile email")
    come(client, provider)
    assert who(client) == "newcomer"


def test_one_source_verifies_no_address_of_another(client: Client, provider: Provider) -> None:
    provider.person |= {"email_verified": True}
    provider.in_userinfo = {"email": "owner@example.org"}
    come(client, provider)
    assert User.objects.get().email == ""


def test_what_a_database_cannot_store(client: Client, provider: Provider) -> None:
    provider.person |= {"name": "New\0 \ud800Comer" + "x" * 2000, "preferred_username": {"of": "many"}}
    come(client, provider)
    claims = Identity.objects.get().claims
    assert claims == {"name": ("New\ufffd ?Comer" + "x" * 2000)[:1000]}


@pytest.mark.parametrize("subject", ["7\0", "7\n", "\ud800", ["7"]])
def test_a_subject_that_no_provider_should_have(client: Client, provider: Provider, subject: Any) -> None:
    provider.change = lambda claims: {**claims, "sub": subject}
    assert come(client, provider).status_code == 403


# --- who is told what ---


def test_a_wrong_secret_is_for_the_admin(client: Client, provider: Provider, settings, caplog: Any) -> None:
    settings.OIDC_CLIENT_SECRET = "not the secret"
    page = come(client, provider).content.decode()
    assert "tell an admin of your team" in page
    assert "this browser began" not in page
    assert "Single sign-on failed" in caplog.text
    assert "not the secret" not in caplog.text + page


def test_an_error_is_one_line_of_the_log_and_not_on_the_page(client: Client, provider: Provider, caplog: Any) -> None:
    state = query_of(leave(client))["state"]
    forged = "<b>x%0A2026-01-01 WARNING forged"
    page = client.get(f"/sign-in/back/?error={forged}&error_description={forged}{'y' * 2000}&state={state}")
    assert "forged" not in page.content.decode()
    lines = [each.getMessage() for each in caplog.records if each.name.endswith("single_sign_on")]
    assert len(lines) == 1
    assert "forged" in lines[0]
    assert "\n" not in lines[0]
    assert len(lines[0]) < 600


def test_the_log_keeps_no_secret_even_at_debug(client: Client, provider: Provider, caplog: Any) -> None:
    caplog.set_level("DEBUG")
    code = query_of(back := way_back(client, provider))["code"]
    started = next(value for key, value in client.session.items() if key.startswith("_state_"))["data"]
    client.get(back)
    assert who(client) == "newcomer"
    for secret in (started["code_verifier"], started["nonce"], code, "a secret of both", "of-the-person"):
        assert secret not in caplog.text
