"""Single sign-on with a real provider: who is let in, and as whom."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.accounts import single_sign_on
from experiments.models import AuditEntry, Identity, Invitation, Member, Role
from tests.support.openid_provider import Provider, query_of
from tests.support.single_sign_on import come, leave, who

pytestmark = pytest.mark.django_db


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


def test_what_the_provider_tells_is_brought_up_to_date(client: Client, provider: Provider) -> None:
    come(client, provider)
    provider.person |= {"name": "Renamed There"}
    come(Client(), provider)
    assert Identity.objects.get().claims["name"] == "Renamed There"


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


# --- providers ---


@pytest.mark.parametrize("methods", [["client_secret_basic"], ["client_secret_post", "client_secret_basic"], []])
def test_the_secret_is_sent_as_the_provider_wants_it(client: Client, provider: Provider, methods: list[str]) -> None:
    provider.change_config = lambda config: {**config, "token_endpoint_auth_methods_supported": methods}
    come(client, provider)
    assert who(client) == "newcomer"


def test_an_issuer_may_end_in_a_slash(client: Client, provider: Provider) -> None:
    provider.change_config = lambda config: {**config, "issuer": f"{provider.issuer}/"}
    provider.change = lambda claims: {**claims, "iss": f"{provider.issuer}/"}
    come(client, provider)
    assert who(client) == "newcomer"


def test_people_stay_connected_while_the_issuer_is_the_same(settings) -> None:
    """The name is stored with each identity."""
    settings.OIDC_ISSUER = "https://id.example.org"
    assert single_sign_on.name() == "oidc-777514328c3865e6"


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
