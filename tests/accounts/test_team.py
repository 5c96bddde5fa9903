"""Who belongs to the team: the page of people, roles, invitations, leaving; there is always an admin."""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from experiments.accounts import actions
from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.models import ApiToken, AuditEntry, Invitation, LoginLink, Member, Role
from tests.support.people import member

pytestmark = pytest.mark.django_db

NEWCOMER = {
    "username": "newcomer",
    "name": "New  Comer",
    "password1": "a horse of many colours",
    "password2": "a horse of many colours",
}


@pytest.fixture
def as_admin(admin: User) -> Client:
    client = Client()
    client.force_login(admin)
    return client


def role_of(user: User) -> Role | None:
    found = Member.objects.filter(user=user).first()
    return Role(found.role) if found else None


def said(answer: Any) -> str:
    """What a page says after a form was sent."""
    assert answer.status_code == 302
    return answer.client.get(answer["Location"]).content.decode()


# --- the page ---


def test_the_page_lists_everybody_and_how_they_come(as_admin: Client, teammate: User, stranger: User) -> None:
    User.objects.filter(pk=teammate.pk).update(first_name="Team", last_name="<i>Mate</i>", email="t@example.org")
    User.objects.create_user("seeded", is_active=False)
    page = as_admin.get("/settings/people/").content.decode()
    assert "Team &lt;i&gt;Mate&lt;/i&gt;" in page
    assert "t@example.org" in page
    assert page.index('id="members-head"') < page.index(">teammate<") < page.index('id="strangers-head"')
    assert page.index('id="strangers-head"') < page.index(">stranger<")
    assert "seeded" not in page, "nobody could ever sign in with it"
    assert "Last active: never" in page
    assert "password" in page


def test_people_are_found_by_name_and_address(as_admin: Client, teammate: User, stranger: User) -> None:
    User.objects.filter(pk=stranger.pk).update(email="far@elsewhere.org")
    assert ">teammate<" in as_admin.get("/settings/people/?q=TEAM mate").content.decode()
    page = as_admin.get("/settings/people/?q=elsewhere").content.decode()
    assert ">stranger<" in page
    assert "name or address holds “elsewhere”" in page


def test_a_script_that_was_just_used_shows_its_person_as_seen(as_admin: Client, teammate: User) -> None:
    _, token = ApiToken.issue(teammate, "script")
    Client().get("/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    rows = as_admin.get("/settings/people/").content.decode().split('class="person-row')
    assert "Last active <time" in next(row for row in rows if ">teammate<" in row)


def test_the_page_asks_the_database_as_often_for_many_as_for_few(
    as_admin: Client, admin: User, django_assert_num_queries: Any
) -> None:
    as_admin.get("/settings/people/")
    with django_assert_num_queries(20, exact=False) as few:
        as_admin.get("/settings/people/")
        queries = len(few)
    for number in range(12):
        person = member(f"person{number}", "RESEARCHER")
        Invitation.issue(person, Role.VIEWER)
        User.objects.create_user(f"stranger{number}")
    with django_assert_num_queries(queries):
        as_admin.get("/settings/people/")


# --- roles ---


def test_an_admin_gives_another_role_and_it_counts_at_once(as_admin: Client, client: Client, teammate: User) -> None:
    client.force_login(teammate)
    assert client.get("/query/").status_code == 403
    answer = as_admin.post(f"/settings/people/{teammate.pk}/role/", {"role": "2", "was": "1"})
    assert "teammate is Researcher now." in said(answer)
    assert client.get("/query/").status_code == 200
    entry = AuditEntry.objects.get(verb="person.role-changed")
    assert (entry.name, entry.details) == ("admin", {"before": "Viewer", "after": "Researcher"})


def test_a_stranger_is_admitted(as_admin: Client, client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get("/").status_code == 404
    as_admin.post(f"/settings/people/{stranger.pk}/role/", {"role": "1", "was": "0"})
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("role", ["", "0", "5", "admin", "1.0"])
def test_a_role_that_does_not_exist_changes_nothing(as_admin: Client, teammate: User, role: str) -> None:
    assert "Choose a role" in said(as_admin.post(f"/settings/people/{teammate.pk}/role/", {"role": role, "was": "1"}))
    assert role_of(teammate) == Role.VIEWER


def test_two_admins_do_not_overwrite_each_other(as_admin: Client, teammate: User) -> None:
    as_admin.post(f"/settings/people/{teammate.pk}/role/", {"role": "3", "was": "1"})
    answer = as_admin.post(f"/settings/people/{teammate.pk}/role/", {"role": "2", "was": "1"})
    assert "Another admin has changed this role meanwhile" in said(answer)
    assert role_of(teammate) == Role.REVIEWER


@pytest.mark.parametrize(
    ("path", "form"), [("role", {"role": "1", "was": "4"}), ("active", {"active": "no"}), ("remove", {})]
)
def test_the_last_admin_stays(as_admin: Client, admin: User, path: str, form: dict[str, str]) -> None:
    closed = member("closed", "ADMIN")
    User.objects.filter(pk=closed.pk).update(is_active=False)
    answer = as_admin.post(f"/settings/people/{admin.pk}/{path}/", form)
    assert answer.status_code == 302
    assert role_of(admin) == Role.ADMIN
    admin.refresh_from_db()
    assert admin.is_active
    assert not AuditEntry.objects.filter(verb__startswith="person.re").exists()


def test_an_admin_may_step_down_when_there_is_another(as_admin: Client, admin: User) -> None:
    member("second", "ADMIN")
    as_admin.post(f"/settings/people/{admin.pk}/role/", {"role": "2", "was": "4"})
    assert role_of(admin) == Role.RESEARCHER
    assert as_admin.get("/settings/people/").status_code == 403


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_demote_each_other_leave_one() -> None:
    people = [member("one", "ADMIN"), member("other", "ADMIN")]
    refused = []

    def demote(user: User, by: User) -> None:
        try:
            actions.set_role(Actor(by), user, Role.VIEWER)
        except StateConflict as refusal:
            refused.append(refusal)
        finally:
            connection.close()

    pairs = [(people[0], people[1]), (people[1], people[0])]
    threads = [threading.Thread(target=demote, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert Member.objects.filter(role=Role.ADMIN).count() == 1


# --- leaving ---


def test_who_is_deactivated_is_out_at_the_next_request_and_so_are_their_scripts(
    as_admin: Client, client: Client, owner: User
) -> None:
    client.force_login(owner)
    _, token = ApiToken.issue(owner, "script")
    script = {"Authorization": f"Bearer {token}"}
    assert client.get("/api/v1/me", headers=script).status_code == 200
    answer = as_admin.post(f"/settings/people/{owner.pk}/active/", {"active": "no"})
    assert "owner is signed out everywhere" in said(answer)
    assert client.get("/runs/")["Location"] == "/sign-in/?next=/runs/"
    assert Client().get("/api/v1/me", headers=script).status_code == 401
    form = {"username": "owner", "password": "correct horse battery"}
    assert Client().post("/sign-in/", form).status_code == 200, "the door stays closed"
    as_admin.post(f"/settings/people/{owner.pk}/active/", {"active": "yes"})
    assert client.get("/runs/").status_code == 302, "the old session does not come back"
    assert Client().post("/sign-in/", form).status_code == 302
    assert role_of(owner) == Role.RESEARCHER


def test_who_is_removed_is_a_stranger_at_the_next_request(as_admin: Client, client: Client, owner: User) -> None:
    client.force_login(owner)
    answer = as_admin.post(f"/settings/people/{owner.pk}/remove/")
    assert "owner does not belong to the team any more" in said(answer)
    assert client.get("/runs/").status_code == 404
    assert ">owner<" in as_admin.get("/settings/people/").content.decode(), "to be admitted again"
    assert AuditEntry.objects.get(verb="person.removed").details == {"role": "Researcher"}


def test_nobody_removes_or_closes_themselves(as_admin: Client, admin: User) -> None:
    member("second", "ADMIN")
    assert "cannot remove yourself" in said(as_admin.post(f"/settings/people/{admin.pk}/remove/"))
    assert "cannot close your own" in said(as_admin.post(f"/settings/people/{admin.pk}/active/", {"active": "no"}))
    assert role_of(admin) == Role.ADMIN


@pytest.mark.parametrize("way", ["role", "active", "remove"])
def test_the_links_that_an_admin_made_end_with_their_being_one(as_admin: Client, teammate: User, way: str) -> None:
    second = member("second", "ADMIN")
    invitation, _ = Invitation.issue(second, Role.ADMIN)
    token = LoginLink.issue(teammate, made_by=second)
    form = {"role": {"role": "2", "was": "4"}, "active": {"active": "no"}, "remove": {}}[way]
    as_admin.post(f"/settings/people/{second.pk}/{way}/", form)
    invitation.refresh_from_db()
    assert invitation.state == "revoked"
    assert Client().get(f"/enter/{token}/").status_code == 410


# --- invitations ---


def link_on(page: str) -> str:
    found = re.search(r"<pre>http://testserver(/\S+)</pre>", page)
    assert found
    return found[1]


def test_somebody_is_invited_and_joins(as_admin: Client, client: Client) -> None:
    answer = as_admin.post("/settings/people/invite/", {"role": "3", "note": "guest@example.org"})
    link = link_on(answer.content.decode())
    assert "no-store" in answer["Cache-Control"]
    token = link.split("/")[2]
    assert token not in as_admin.get("/settings/people/").content.decode(), "shown once"
    assert token not in str(list(Invitation.objects.values())), "only a hash is kept"
    assert "invited as <b>reviewer</b>" in client.get(link).content.decode()
    assert client.post(link, NEWCOMER)["Location"] == "/"
    assert client.get("/runs/").status_code == 200
    user = User.objects.get(username="newcomer")
    assert user.first_name == "New Comer"
    assert role_of(user) == Role.REVIEWER
    assert Client().get(link).status_code == 410, "good once"
    assert Client().post("/sign-in/", {"username": "newcomer", "password": NEWCOMER["password1"]}).status_code == 302
    assert "Taken" in as_admin.get("/settings/people/").content.decode()
    verbs = set(AuditEntry.objects.values_list("verb", flat=True))
    assert {"invitation.made", "invitation.accepted"} <= verbs


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"username": "Admin"}, "This user name is taken"),
        ({"username": "a b"}, "Enter a valid username"),
        ({"username": "x" * 61}, "At most 60 characters"),
        ({"username": ""}, "This field is required"),
        ({"password1": "short", "password2": "short"}, "too short"),
        ({"password1": "password1234", "password2": "password1234"}, "too common"),
        ({"password1": "newcomer12", "password2": "newcomer12"}, "too similar"),
        ({"password2": "another horse of colours"}, "The two password fields"),
    ],
)
def test_a_newcomer_is_told_what_is_wrong_and_the_invitation_stays(
    client: Client, admin: User, change: dict[str, str], words: str
) -> None:
    invitation, token = Invitation.issue(admin, Role.VIEWER)
    answer = client.post(f"/join/{token}/", {**NEWCOMER, **change})
    assert answer.status_code == 400
    assert words in answer.content.decode()
    invitation.refresh_from_db()
    assert invitation.state == "open"
    assert User.objects.count() == 1


def test_names_show_nothing_invisible(client: Client, admin: User) -> None:
    _, token = Invitation.issue(admin, Role.VIEWER)
    client.post(f"/join/{token}/", {**NEWCOMER, "name": "\u202eevil\u200b <b>x</b>"})
    assert User.objects.get(username="newcomer").first_name == "evil <b>x</b>"


def test_an_invitation_grows_old_and_is_taken_back(as_admin: Client, client: Client, admin: User) -> None:
    old, token = Invitation.issue(admin, Role.VIEWER)
    Invitation.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert client.get(f"/join/{token}/").status_code == 410
    assert old.expires - old.created >= timedelta(days=7) - timedelta(seconds=1)
    fresh, token = Invitation.issue(admin, Role.VIEWER)
    as_admin.post(f"/settings/people/invitations/{fresh.pk}/revoke/")
    assert client.post(f"/join/{token}/", NEWCOMER).status_code == 410
    assert client.get("/join/made-up/").status_code == 410
    assert User.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_who_take_an_invitation_at_the_same_moment_one_joins() -> None:
    _, token = Invitation.issue(member("admin", "ADMIN"), Role.VIEWER)
    answers: list[int] = []

    def join(number: int) -> None:
        answers.append(Client().post(f"/join/{token}/", {**NEWCOMER, "username": f"newcomer{number}"}).status_code)
        connection.close()

    threads = [threading.Thread(target=join, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [302, 410, 410]
    assert User.objects.filter(username__startswith="newcomer").count() == 1


def test_a_stranger_joins_as_who_they_are_and_a_member_is_told(client: Client, admin: User, stranger: User) -> None:
    invitation, token = Invitation.issue(admin, Role.RESEARCHER)
    client.force_login(admin)
    assert "belong to this team already" in client.post(f"/join/{token}/").content.decode()
    client.force_login(stranger)
    assert "Join as stranger" in client.get(f"/join/{token}/").content.decode()
    assert client.post(f"/join/{token}/")["Location"] == "/"
    assert role_of(stranger) == Role.RESEARCHER
    invitation.refresh_from_db()
    assert invitation.taken_by == stranger


def test_a_note_that_is_no_note_invites_nobody(as_admin: Client) -> None:
    assert as_admin.post("/settings/people/invite/", {"role": "1", "note": "x" * 201}).status_code == 400
    assert not Invitation.objects.exists()


# --- links for who forgot the password ---


def test_an_admin_makes_a_link_for_who_forgot_the_password(as_admin: Client, client: Client, teammate: User) -> None:
    answer = as_admin.post(f"/settings/people/{teammate.pk}/link/")
    assert client.post(link_on(answer.content.decode()))["Location"] == "/"
    new = {"new_password1": "a horse of many colours", "new_password2": "a horse of many colours"}
    assert client.post("/settings/you/password/", new)["Location"] == "/settings/you/"
    assert Client().post("/sign-in/", {"username": "teammate", "password": new["new_password1"]}).status_code == 302
    assert AuditEntry.objects.filter(verb="sign-in-link.made", name="admin").exists()


@pytest.mark.parametrize("who", ["stranger", "closed"])
def test_no_link_is_made_for_who_could_not_use_it(as_admin: Client, stranger: User, who: str) -> None:
    closed = member("closed", "VIEWER")
    User.objects.filter(pk=closed.pk).update(is_active=False)
    user = User.objects.get(username=who)
    assert as_admin.post(f"/settings/people/{user.pk}/link/").status_code == 404
    assert not LoginLink.objects.exists()


# --- from the terminal ---


def test_the_first_admin_is_invited_from_the_terminal(client: Client, db: None) -> None:
    out = StringIO()
    call_command("invite", role="admin", note="the first", stdout=out)
    line = out.getvalue().splitlines()[-1]
    assert line.startswith("http://127.0.0.1:8000/join/")
    assert client.post(line.removeprefix("http://127.0.0.1:8000"), NEWCOMER).status_code == 302
    assert role_of(User.objects.get()) == Role.ADMIN
    assert client.get("/settings/people/").status_code == 200
    entry = AuditEntry.objects.get(verb="invitation.made")
    assert (entry.user, entry.details) == (None, {"role": "Admin"})
