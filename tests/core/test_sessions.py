"""Sessions: how long they last, what a person sees of theirs, and how they end, sockets included."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.accounts import sign_in_signals, throttle
from experiments.core import sockets
from experiments.core.sessions import VISIT, SessionStore
from experiments.models import AuditEntry, Member, Run, Session
from tests.support.builders import make_run
from tests.support.people import member
from tests.support.viewer import Viewer

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"
NEW = "a horse of many colours"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
HOUR = 3600


def sign_in(user: User, **headers: str) -> Client:
    browser = Client(**headers)
    assert browser.post("/sign-in/", {"username": user.username, "password": PASSWORD}).status_code == 302
    return browser


def is_in(browser: Client) -> bool:
    return browser.get("/settings/you/").status_code == 200


def age(browser: Client, **changes: float) -> None:
    """Let the session's times be so many seconds ago."""
    store = SessionStore(browser.session.session_key)
    store[VISIT] = {**store[VISIT], **{name: time.time() - ago for name, ago in changes.items()}}
    store.save()


# --- how long ---


def test_a_session_that_is_used_lasts_and_an_idle_one_ends(owner: User, settings: Any) -> None:
    settings.SESSION_COOKIE_AGE, settings.SESSION_LENGTH = HOUR, 24 * HOUR
    browser = sign_in(owner)
    Session.objects.update(expire_date=timezone.now() + timedelta(minutes=5))
    age(browser, seen=30 * 60)
    Session.objects.update(expire_date=timezone.now() + timedelta(minutes=30))
    assert is_in(browser)
    left = Session.objects.get().expire_date - timezone.now()
    assert timedelta(minutes=59) < left <= timedelta(hours=1), "used, it may rest for another hour"
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert not is_in(browser)


def test_a_session_ends_however_much_it_is_used(owner: User, settings: Any) -> None:
    settings.SESSION_COOKIE_AGE, settings.SESSION_LENGTH = HOUR, 24 * HOUR
    browser = sign_in(owner)
    age(browser, began=23.5 * HOUR, seen=600)
    assert is_in(browser)
    left = Session.objects.get().expire_date - timezone.now()
    assert timedelta(minutes=28) < left <= timedelta(minutes=30)
    assert int(browser.cookies["sessionid"]["max-age"]) <= 1800
    age(browser, began=24.1 * HOUR, seen=600)
    assert not is_in(browser)


def test_a_page_that_is_only_left_open_keeps_no_session_alive(owner: User) -> None:
    browser = sign_in(owner)
    age(browser, seen=600)
    before = Session.objects.get().expire_date
    assert browser.get("/pulse/", headers={sign_in_signals.BY_ITSELF: "yes"}).status_code == 200
    assert Session.objects.get().expire_date == before
    assert is_in(browser)
    assert Session.objects.get().expire_date > before


def test_being_seen_is_written_once_a_minute_at_most(owner: User, django_assert_num_queries: Any) -> None:
    browser = sign_in(owner)
    is_in(browser)
    written = Member.objects.get(user=owner).seen
    assert written
    assert is_in(browser)
    assert Member.objects.get(user=owner).seen == written
    Member.objects.update(seen=written - timedelta(seconds=sign_in_signals.EVERY + 5))
    age(browser, seen=sign_in_signals.EVERY + 5)
    assert is_in(browser)
    assert Member.objects.get(user=owner).seen >= written


def test_rows_of_ended_sessions_go_when_somebody_signs_in(owner: User, teammate: User) -> None:
    sign_in(owner)
    Session.objects.update(expire_date=timezone.now() - timedelta(days=1))
    sign_in(teammate)
    assert [row.user for row in Session.objects.all()] == [teammate]


def test_a_session_is_known_to_be_somebodys(owner: User, client: Client) -> None:
    client.get("/sign-in/")
    assert not Session.objects.exists(), "who only looks at the door gets none"
    browser = sign_in(owner)
    assert Session.objects.get().user == owner
    browser.post("/sign-out/")
    assert not Session.objects.filter(user=owner).exists()


# --- one's own ---


def test_a_person_sees_where_they_are_signed_in_and_ends_it_elsewhere(owner: User, teammate: User) -> None:
    here, there, other = (
        sign_in(owner, HTTP_USER_AGENT=FIREFOX),
        sign_in(owner, REMOTE_ADDR="192.0.2.9"),
        sign_in(teammate),
    )
    page = here.get("/settings/you/").content.decode()
    assert "Firefox on Linux" in page
    assert "192.0.2.9" in page
    assert page.count("This browser") == 1
    assert page.count('<li class="session">') == 2
    for browser in (here, there):
        assert browser.session.session_key not in page, "the key is a secret of its browser"
    here.post("/settings/you/sessions/")
    assert [is_in(browser) for browser in (here, there, other)] == [True, False, True]
    assert AuditEntry.objects.get(verb="sessions.ended").details == {"number": 1}


def test_another_password_signs_out_all_other_browsers(owner: User) -> None:
    here, there = sign_in(owner), sign_in(owner)
    form = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    assert here.post("/settings/you/password/", form)["Location"] == "/settings/you/"
    assert "Your password is changed" in here.get("/settings/you/").content.decode()
    assert not is_in(there)
    assert Session.objects.filter(user=owner).count() == 1
    assert AuditEntry.objects.filter(verb="password.changed", user=owner).exists()
    owner.refresh_from_db()
    assert owner.check_password(NEW)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"old_password": "wrong", "new_password1": NEW, "new_password2": NEW}, "old password was entered incorrectly"),
        ({"new_password1": NEW, "new_password2": NEW}, "This field is required"),
        ({"old_password": PASSWORD, "new_password1": "short", "new_password2": "short"}, "too short"),
        ({"old_password": PASSWORD, "new_password1": NEW, "new_password2": "other"}, "The two password fields"),
    ],
)
def test_a_password_that_is_not_taken(owner: User, form: dict[str, str], words: str) -> None:
    browser = sign_in(owner)
    answer = browser.post("/settings/you/password/", form)
    assert answer.status_code == 400
    assert words in answer.content.decode()
    assert "a horse of many" not in answer.content.decode(), "passwords are never sent back"
    owner.refresh_from_db()
    assert owner.check_password(PASSWORD)


def test_a_browser_that_was_left_open_is_no_way_to_guess_the_password(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = timezone.now()
    monkeypatch.setattr(throttle, "clock", lambda: moment)
    browser = sign_in(owner)
    form = {"old_password": "wrong", "new_password1": NEW, "new_password2": NEW}
    said = [browser.post("/settings/you/password/", form).status_code for _ in range(20)]
    assert said == [400] * 6 + [429] * 14
    assert browser.post("/settings/you/password/", {**form, "old_password": PASSWORD}).status_code == 429


def test_only_who_just_came_by_a_link_needs_no_old_password(owner: User) -> None:
    from experiments.models import LoginLink

    browser = Client()
    browser.post(f"/enter/{LoginLink.issue(owner)}/")
    assert "Current password" not in browser.get("/settings/you/").content.decode()
    age(browser, began=2 * HOUR)
    assert "Current password" in browser.get("/settings/you/").content.decode()
    new = {"new_password1": NEW, "new_password2": NEW}
    assert browser.post("/settings/you/password/", new).status_code == 400
    assert "Current password" in sign_in(owner).get("/settings/you/").content.decode()


def test_who_has_no_password_sets_one(as_owner: Client, owner: User) -> None:
    owner.set_unusable_password()
    owner.save()
    as_owner.force_login(owner)
    assert "You have none yet" in as_owner.get("/settings/you/").content.decode()
    as_owner.post("/settings/you/password/", {"new_password1": NEW, "new_password2": NEW})
    owner.refresh_from_db()
    assert owner.check_password(NEW)
    assert is_in(as_owner)


@pytest.mark.parametrize(("typed", "kept"), [("  New\tName ", "New Name"), ("<b>x</b>", "<b>x</b>"), ("", "")])
def test_a_person_names_themselves(as_owner: Client, owner: User, typed: str, kept: str) -> None:
    User.objects.update(last_name="Before")
    as_owner.post("/settings/you/name/", {"name": typed})
    owner.refresh_from_db()
    assert owner.get_full_name() == kept
    page = as_owner.get("/settings/you/").content.decode()
    assert "<b>x</b>" not in page
    assert AuditEntry.objects.get(verb="person.renamed").details["after"] == kept


def test_a_name_that_is_too_long_is_told(as_owner: Client) -> None:
    assert as_owner.post("/settings/you/name/", {"name": "x" * 151}).status_code == 400


def test_the_page_asks_the_database_as_often_for_many_sessions_as_for_one(
    owner: User, django_assert_num_queries: Any
) -> None:
    browser = sign_in(owner)
    is_in(browser)
    with django_assert_num_queries(20, exact=False) as few:
        is_in(browser)
        number = len(few)
    for _ in range(5):
        sign_in(owner)
    with django_assert_num_queries(number):
        is_in(browser)


# --- sockets ---


class SignedIn(Viewer):
    """A browser that watches with a session, as the real stack has it."""

    def __init__(self, run: Run, user: User, session: SessionStore) -> None:
        super().__init__(run, user)
        self.socket.scope["session"] = session


def leave_team(user: User) -> None:
    Member.objects.filter(user=user).delete()


def close_account(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def end_sessions(user: User) -> None:
    Session.objects.filter(user=user).delete()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("leave", [leave_team, close_account, end_sessions])
async def test_an_open_socket_of_somebody_who_is_out_closes(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, leave: Any
) -> None:
    monkeypatch.setattr(sockets, "LOOK_EVERY", 0.05)
    owner = await sync_to_async(member)("owner", "RESEARCHER")
    run = await sync_to_async(make_run)(owner)
    browser = await sync_to_async(sign_in)(owner)
    session = await sync_to_async(lambda: SessionStore(browser.session.session_key))()
    async with SignedIn(run, owner, session) as viewer:
        await viewer.until("state")
        await sync_to_async(leave)(owner)
        closed = False
        while not closed:
            message = await viewer.next()
            closed = message["type"] == "closed"
        assert message["code"] == sockets.NOT_YOURS
    async with SignedIn(run, owner, session) as again:
        assert (await again.next())["code"] == sockets.NOT_YOURS
