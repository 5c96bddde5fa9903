"""Single sign-on with a real provider: who is let in, as whom, and what is not believed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import AuditEntry, Identity, Invitation, Member, Role
from tests.support.openid_provider import CLIENT, SECRET, Provider, key, query_of, serving

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with serving() as provider:
        yield provider


@pytest.fixture
def provider(server: Provider, settings) -> Provider:
    """The provider as new, and this site registered with it."""
    server.__init__(issuer=server.issuer)  # type: ignore[misc]
    settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = server.issuer, CLIENT, SECRET
    settings.OIDC_NAME = "Our Institute"
    return server


def leave(client: Client, path: str = "/sign-in/with/", **form: str) -> str:
    """The provider's address that the browser is sent to."""
    page = client.post(path, form)
    assert page.status_code == 200, page.content.decode()
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', page.content.decode())
    assert found
    return unescape(found[1])


def come(client: Client, provider: Provider, path: str = "/sign-in/with/", **form: str) -> Any:
    """All the way to the provider and back; the answer to coming back."""
    back = provider.authorize(query_of(leave(client, path, **form)))
    return client.get(back.replace("http://testserver", ""))


def who(client: Client) -> str:
    return str(User.objects.get(pk=client.session["_auth_user_id"])) if "_auth_user_id" in client.session else ""


# --- coming in ---


def test_a_newcomer_is_let_in_and_sees_nothing_until_an_admin_gives_a_role(client: Client, provider: Provider) -> None:
    provider.email("new@example.org")
    answer = come(client, provider)
    assert answer.status_code == 200
    assert "have no role yet" in answer.content.decode()
    user = User.objects.get()
    assert (user.username, user.first_name, user.email) == ("newcomer", "New Comer", "new@example.org")
    assert not user.has_usable_password()
    assert client.get("/").status_code == 404
    Member.objects.create(user=user)
    assert client.get("/").status_code == 200
    assert AuditEntry.objects.filter(verb="person.signed-in", user=user).exists()


def test_whoever_comes_again_is_the_same_person_and_lands_where_they_wanted(client: Client, provider: Provider) -> None:
    come(client, provider)
    Member.objects.create(user=User.objects.get())
    provider.person |= {"preferred_username": "renamed-there", "email": "x@example.org", "email_verified": True}
    again = Client()
    assert come(again, provider, next="/runs/")["Location"] == "/runs/"
    assert who(again) == "newcomer"
    assert User.objects.count() == 1
    assert come(Client(), provider, next="https://elsewhere.example/")["Location"] == "/"


def test_the_settings_may_give_newcomers_a_role(client: Client, provider: Provider, settings) -> None:
    settings.OIDC_ROLE = "researcher"
    assert come(client, provider)["Location"] == "/"
    assert Member.objects.get().role == Role.RESEARCHER
    assert AuditEntry.objects.get(verb="person.admitted").details["by"] == "single sign-on"


def test_names_that_are_taken_get_a_number_and_odd_ones_are_made_to_fit(provider: Provider, owner: User) -> None:
    for subject, wanted, got in [
        ("1", "owner", "owner2"),
        ("2", "OWNER", "OWNER3"),
        ("3", "a b<script>", "a-b-script"),
        ("4", "anna@example.org", "anna"),
        ("5", "", "New-Comer"),
    ]:
        provider.person = {"sub": subject, "name": "New Comer", "preferred_username": wanted}
        browser = Client()
        come(browser, provider)
        assert who(browser) == got


def test_what_the_token_leaves_out_is_asked_for(client: Client, provider: Provider) -> None:
    provider.person = {"sub": "7"}
    provider.in_userinfo = {"email": "new@example.org", "email_verified": True, "name": "New Comer"}
    come(client, provider)
    user = User.objects.get()
    assert (user.email, user.first_name) == ("new@example.org", "New Comer")


def test_of_all_that_the_provider_tells_little_is_kept(client: Client, provider: Provider) -> None:
    provider.person |= {"phone_number": "123", "groups": ["all of them"]}
    come(client, provider)
    account = Identity.objects.get()
    assert account.claims.keys() == {"name", "preferred_username"}


# --- what is not believed ---


def refused(client: Client, answer: Any, status: int = 403) -> str:
    assert answer.status_code == status, answer.content.decode()
    assert who(client) == ""
    assert User.objects.count() == 0
    return answer.content.decode()


def test_a_state_that_this_browser_did_not_begin(client: Client, provider: Provider) -> None:
    attacker = Client()
    back = provider.authorize(query_of(leave(attacker))).replace("http://testserver", "")
    assert "does not belong to a sign-in that this browser began" in refused(client, client.get(back))
    leave(client)
    refused(client, client.get(back))
    refused(client, client.get("/sign-in/back/"))
    refused(client, client.get("/sign-in/back/?code=x&state=y"))


def test_an_answer_that_comes_twice(client: Client, provider: Provider) -> None:
    back = provider.authorize(query_of(leave(client))).replace("http://testserver", "")
    assert client.get(back).status_code == 200
    client.post("/sign-out/")
    assert client.get(back).status_code == 403
    assert who(client) == ""


WRONG: dict[str, dict[str, Any]] = {
    "nonce of another request": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "for another site": {"aud": "another"},
    "for several, asked by another": {"aud": [CLIENT, "another"], "azp": "another"},
    "by another issuer": {"iss": "https://elsewhere.example"},
    "too old": {"exp": int(time.time()) - 3600},
    "from tomorrow": {"iat": int(time.time()) + 86400},
    "of nobody": {"sub": ""},
    "of a number": {"sub": 7},
    "of somebody with a very long name": {"sub": "x" * 300},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_token_that_is_not_for_this_request(client: Client, provider: Provider, wrong: dict[str, Any]) -> None:
    provider.change = lambda claims: {**claims, **wrong}
    refused(client, come(client, provider))


@pytest.mark.parametrize("name", ["exp", "iss", "aud", "sub", "iat", "nonce"])
def test_a_token_that_leaves_something_out(client: Client, provider: Provider, name: str) -> None:
    provider.change = lambda claims: {each: value for each, value in claims.items() if each != name}
    refused(client, come(client, provider))


def test_a_token_that_another_signed(client: Client, provider: Provider) -> None:
    provider.signs_with = key()
    refused(client, come(client, provider))


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_that_nobody_or_anybody_could_have_signed(client: Client, provider: Provider, algorithm: str) -> None:
    provider.algorithm = algorithm
    refused(client, come(client, provider))


def test_what_the_provider_tells_of_another_person(client: Client, provider: Provider) -> None:
    provider.in_userinfo = {"sub": "8", "email": "victim@example.org", "email_verified": True}
    refused(client, come(client, provider))


@pytest.mark.parametrize(
    "change",
    [
        lambda config: {**config, "issuer": "https://elsewhere.example"},
        lambda config: {"issuer": config["issuer"]},
        lambda config: ["nothing", config],
    ],
)
def test_a_provider_that_is_another_than_the_settings_name(client: Client, provider: Provider, change: Any) -> None:
    provider.change_config = change
    assert "does not answer" in refused(client, client.post("/sign-in/with/"), 502)


def test_a_provider_that_is_away(client: Client, provider: Provider) -> None:
    back = provider.authorize(query_of(leave(client))).replace("http://testserver", "")
    provider.down = True
    refused(client, client.post("/sign-in/with/"), 502)
    refused(client, client.get(back), 502)


def test_somebody_who_changes_their_mind(client: Client, provider: Provider) -> None:
    state = query_of(leave(client))["state"]
    answer = client.get(f"/sign-in/back/?error=access_denied&state={state}")
    assert "You cancelled at Our Institute" in refused(client, answer)


# --- e-mail addresses ---


def test_an_account_with_the_same_address_is_not_taken_over(client: Client, provider: Provider, owner: User) -> None:
    User.objects.update(email="owner@example.org")
    provider.email("Owner@Example.org")
    answer = come(client, provider)
    assert answer.status_code == 403
    assert "has your e-mail address already" in answer.content.decode()
    assert who(client) == ""
    assert not Identity.objects.exists()


def test_an_address_that_nobody_verified_is_not_kept(client: Client, provider: Provider, owner: User) -> None:
    User.objects.update(email="owner@example.org")
    provider.email("owner@example.org", verified=False)
    come(client, provider)
    assert who(client) == "newcomer"
    assert User.objects.get(username="newcomer").email == ""
    assert client.get("/").status_code == 404


@pytest.mark.parametrize(
    ("email", "verified", "enters"),
    [
        ("a@example.org", True, True),
        ("a@EXAMPLE.ORG", "true", True),
        ("a@example.org", False, False),
        ("a@example.org", "false", False),
        ("a@elsewhere.org", True, False),
        ("a@sub.example.org", True, False),
        ("example.org", True, False),
        (["a@example.org"], True, False),
        (None, None, False),
    ],
)
def test_domains_say_who_comes_in_uninvited(
    client: Client, provider: Provider, settings, email: Any, verified: Any, enters: bool
) -> None:
    settings.OIDC_DOMAINS = ["example.org"]
    provider.email(email, verified)
    assert come(client, provider).status_code == (200 if enters else 403)
    assert User.objects.exists() == enters


# --- invitations, closed accounts, connecting ---


def test_an_invitation_is_taken_by_single_sign_on(client: Client, provider: Provider, owner: User, settings) -> None:
    settings.OIDC_DOMAINS, settings.OIDC_ROLE = ["example.org"], "viewer"
    invitation, token = Invitation.issue(owner, Role.REVIEWER)
    assert "Join with Our Institute" in client.get(f"/join/{token}/").content.decode()
    assert come(client, provider, join=token)["Location"] == "/"
    assert Member.objects.get(user__username="newcomer").role == Role.REVIEWER
    invitation.refresh_from_db()
    assert invitation.state == "taken"
    assert token not in str(list(client.session.items()))


def test_a_spent_invitation_gives_a_newcomer_no_role(client: Client, provider: Provider, owner: User) -> None:
    invitation, token = Invitation.issue(owner, Role.ADMIN)
    invitation.revoke()
    assert come(client, provider, join=token).status_code == 200
    assert not Member.objects.filter(user__username="newcomer").exists()


def test_a_closed_account_stays_closed(client: Client, provider: Provider) -> None:
    come(client, provider)
    User.objects.update(is_active=False)
    again = Client()
    answer = come(again, provider)
    assert answer.status_code == 403
    assert "was deactivated" in answer.content.decode()
    assert who(again) == ""


def test_a_person_connects_and_disconnects_it(as_owner: Client, owner: User, provider: Provider) -> None:
    User.objects.update(email="owner@example.org")
    provider.email("owner@example.org")
    assert "Not connected" in as_owner.get("/settings/you/").content.decode()
    assert come(as_owner, provider, "/settings/you/connect/")["Location"] == "/settings/you/"
    assert "Connected as owner@example.org" in as_owner.get("/settings/you/").content.decode()
    browser = Client()
    come(browser, provider)
    assert who(browser) == "owner"
    as_owner.post("/settings/you/disconnect/")
    assert not Identity.objects.exists()
    assert list(AuditEntry.objects.filter(verb__startswith="sign-on.").values_list("verb", flat=True)) == [
        "sign-on.disconnected",
        "sign-on.connected",
    ]


def test_an_identity_of_another_is_not_connected(as_owner: Client, provider: Provider) -> None:
    come(Client(), provider)
    answer = come(as_owner, provider, "/settings/you/connect/")
    assert answer.status_code == 403
    assert "connected to another account" in answer.content.decode()
    assert Identity.objects.get().user.username == "newcomer"


def test_connecting_ends_with_the_session_that_began_it(
    client: Client, owner: User, teammate: User, provider: Provider
) -> None:
    client.force_login(owner)
    back = provider.authorize(query_of(leave(client, "/settings/you/connect/"))).replace("http://testserver", "")
    client.post("/sign-out/")
    client.force_login(teammate)
    assert client.get(back).status_code in {403, 409}
    assert not Identity.objects.exists()


def test_without_a_password_it_cannot_be_disconnected(as_owner: Client, owner: User, provider: Provider) -> None:
    come(as_owner, provider, "/settings/you/connect/")
    owner.set_unusable_password()
    owner.save()
    as_owner.force_login(owner)
    as_owner.post("/settings/you/disconnect/")
    assert Identity.objects.exists()


# --- the settings ---


def test_without_a_provider_there_is_no_button_and_no_address(client: Client, as_owner: Client) -> None:
    assert "Sign in with" not in Client().get("/sign-in/").content.decode()
    assert Client().post("/sign-in/with/").status_code == 404
    assert Client().get("/sign-in/back/?code=x&state=y").status_code == 404
    assert as_owner.post("/settings/you/connect/").status_code == 404


def test_the_sign_in_page_offers_it(client: Client, provider: Provider) -> None:
    page = client.get("/sign-in/?next=/runs/").content.decode()
    assert "Sign in with Our Institute" in page
    assert client.get("/sign-in/with/").status_code == 405
    parts = urlsplit(leave(client))
    assert f"{parts.scheme}://{parts.netloc}" == provider.issuer


def test_people_of_another_issuer_are_other_people(client: Client, provider: Provider, settings) -> None:
    come(client, provider)
    account = Identity.objects.get()
    account.provider = "oidc-of-the-issuer-before"
    account.save()
    other = Client()
    come(other, provider)
    assert who(other) == "newcomer2"
