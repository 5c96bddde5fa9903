"""Signing in: by password, by one-time link, and out again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.models import LoginLink

pytestmark = pytest.mark.django_db


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_a_name_and_a_password_lead_to_the_page_that_was_asked_for(client: Client, owner: User) -> None:
    form = {"username": "owner", "password": "correct horse battery", "next": "/query/"}
    response = client.post("/sign-in/", form)
    assert response.status_code == 302
    assert response["Location"] == "/query/"


def test_a_wrong_password_says_so_and_nothing_about_who_exists(client: Client, owner: User) -> None:
    answers = [client.post("/sign-in/", {"username": name, "password": "wrong"}) for name in ("owner", "nobody")]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert all("do not match an account" in answer.content.decode() for answer in answers)


def test_the_sign_in_page_leads_nowhere_outside(client: Client, owner: User) -> None:
    form = {"username": "owner", "password": "correct horse battery", "next": "https://elsewhere.example/"}
    assert client.post("/sign-in/", form)["Location"] == "/"


def test_a_link_signs_in_once(client: Client, owner: User) -> None:
    token = LoginLink.issue(owner)
    assert client.post(f"/enter/{token}/")["Location"] == "/"
    assert signed_in(client)
    other = Client()
    assert other.post(f"/enter/{token}/").status_code == 410
    response = other.get(f"/enter/{token}/")
    assert response.status_code == 410
    assert "cannot be used any more" in response.content.decode()
    assert not signed_in(other)


def test_looking_at_a_link_does_not_spend_it(client: Client, owner: User) -> None:
    """Chats and mail programs fetch every link that passes through them."""
    path = f"/enter/{LoginLink.issue(owner)}/"
    for _ in range(2):
        assert client.head(path).status_code == 200
        assert "Sign in as owner" in client.get(path).content.decode()
        assert client.options(path).status_code == 405
    assert not signed_in(client)
    careful = Client(enforce_csrf_checks=True)
    assert careful.post(path).status_code == 403
    assert client.post(path)["Location"] == "/"
    assert signed_in(client)


def test_a_spent_link_leads_who_is_signed_in_on(as_owner: Client) -> None:
    assert as_owner.get("/enter/spent/")["Location"] == "/"


def test_a_link_grows_old(client: Client, owner: User) -> None:
    token = LoginLink.issue(owner)
    LoginLink.objects.update(created=timezone.now() - timedelta(hours=25))
    assert client.get(f"/enter/{token}/").status_code == 410


def test_a_link_of_somebody_who_left_is_of_no_use(client: Client, owner: User) -> None:
    token = LoginLink.issue(owner)
    User.objects.update(is_active=False)
    assert client.get(f"/enter/{token}/").status_code == 410


def test_the_token_itself_is_nowhere_in_the_database(owner: User) -> None:
    token = LoginLink.issue(owner)
    assert token not in str(list(LoginLink.objects.values()))


def test_signing_out_takes_a_button(as_owner: Client) -> None:
    assert as_owner.get("/sign-out/").status_code == 405
    assert signed_in(as_owner)
    as_owner.post("/sign-out/")
    assert not signed_in(as_owner)


def test_a_stranger_who_finds_nothing_may_sign_out(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    page = client.get("/runs/").content.decode()
    assert "You are signed in as stranger." in page
    assert 'action="/sign-out/"' in page
    assert "Sign out" not in Client().get("/nowhere/").content.decode()


def test_a_part_of_a_page_that_asks_without_a_session_moves_the_whole_page(client: Client, owner: User) -> None:
    response = client.get("/sign-in/", headers={"HX-Request": "true"})
    assert response["HX-Redirect"] == "/sign-in/"


def test_the_root_is_the_overview(as_owner: Client) -> None:
    assert "<h1>Overview</h1>" in as_owner.get("/").content.decode()


def test_every_answer_carries_the_policy(as_owner: Client, client: Client) -> None:
    for path in ("/runs/", "/sign-in/", "/nowhere/"):
        policy = as_owner.get(path)["Content-Security-Policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
