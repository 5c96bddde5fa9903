"""When a link to a run opens, who makes and revokes it."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from experiments.core.logs import Plain
from experiments.models import AuditEntry, Run, Share
from experiments.sharing import actions
from tests.support.api_world import Script
from tests.support.builders import make_run
from tests.support.people import member
from tests.support.shared_run import eventful_run, link, opened


@pytest.fixture
def run(db: None) -> Run:
    return eventful_run()


# --- when it opens ---


def spoilt(run: Run) -> dict[str, str]:
    """Links that are not good, each for a reason of its own."""
    revoked, expired = link(run), link(run, days=-1)
    revoked.share.revoke()
    return {"revoked": revoked.path, "expired": expired.path, "wrong": f"/shared/{'x' * 43}/", "odd": "/shared/%00é/"}


def _same(headers: Any) -> dict[str, str]:
    """Without the request's id, which is each answer's own."""
    return {name: value for name, value in headers.items() if name != "X-Request-ID"}


def test_revoked_expired_and_wrong_links_are_told_apart_by_nobody(run: Run) -> None:
    answers, queries = set(), set()
    for path in spoilt(run).values():
        with CaptureQueriesContext(connection) as asked:
            response = Client().get(path)
        answers.add((response.status_code, response.content, tuple(sorted(_same(response.headers).items()))))
        queries.add(tuple(re.sub(r"'[^']*'", "?", each["sql"]) for each in asked))
    assert len(answers) == 1
    assert next(iter(answers))[0] == 404
    assert len(queries) == 1
    assert len(next(iter(queries))) == 1


def test_somebody_who_is_signed_in_gets_the_same_pages(run: Run) -> None:
    client = Client()
    client.force_login(run.owner)
    assert "owner-login" not in opened(link(run).path, client)
    assert client.get(spoilt(run)["revoked"]).content == Client().get("/shared/x/").content


def test_a_link_dies_with_its_run(run: Run) -> None:
    at = link(run)
    run.delete()
    assert Client().get(at.path).status_code == 404


def test_views_are_counted_once_for_each_opening(run: Run) -> None:
    at = link(run)
    for path in (at.path, at.path, f"{at.path}?page=1"):
        opened(path)
    Client().head(at.path)
    at.share.refresh_from_db()
    assert at.share.views == 2
    assert at.share.last_viewed is not None


def test_the_token_is_long_and_kept_nowhere(run: Run) -> None:
    at = link(run)
    assert len(at.token) == 43, "256 bits"
    assert at.token not in str(Share.objects.values().get())


def test_the_log_does_not_tell_it(run: Run, settings: Any) -> None:
    at = link(run)
    formats = settings.LOGGING["formatters"]["plain"]
    assert formats["class"] == f"{Plain.__module__}.{Plain.__name__}"
    formatter = Plain(formats["format"], style=formats["style"])
    line = logging.LogRecord("django.request", logging.WARNING, "", 0, "Not Found: %s", (f"{at.path}images/x",), None)
    assert formatter.format(line).endswith("Not Found: /shared/…/images/x")
    for path in ("/enter/abc/", "/join/abc/"):
        assert "abc" not in formatter.format(logging.LogRecord("a", 30, "", 0, path, None, None))


# --- making and revoking ---


@pytest.fixture
def as_researcher(client: Client, run: Run) -> Client:
    client.force_login(run.owner)
    return client


def make(client: Client, run: Run, **fields: str) -> Any:
    return client.post(f"/runs/{run.pk}/shares/", {"span": "7", **fields})


def test_a_researcher_makes_a_link_that_is_shown_once(as_researcher: Client, run: Run) -> None:
    response = make(as_researcher, run, show_names="on")
    found = re.search(r"http://testserver(/shared/[\w-]{43}/)", response.content.decode())
    assert found
    assert "Owner Fullname" in opened(found[1])
    assert found[1] not in as_researcher.get(f"/runs/{run.pk}/shares/").content.decode()
    share = Share.objects.get()
    assert (share.show_names, share.show_comments, share.created_by) == (True, False, run.owner)
    entry = AuditEntry.objects.get(verb="run.shared")
    assert (entry.row_pk, entry.details["share"], entry.details["names"]) == (run.pk, share.pk, True)
    assert found[1].split("/")[2] not in str(entry.details)


@pytest.mark.parametrize(("span", "days"), [("1", 1), ("7", 7), ("30", 30)])
def test_it_is_good_for_as_long_as_was_chosen(as_researcher: Client, run: Run, span: str, days: int) -> None:
    make(as_researcher, run, span=span)
    share = Share.objects.get()
    assert share.expires - share.created == pytest.approx(timedelta(days=days), abs=timedelta(minutes=1))


def test_it_is_good_until_the_end_of_a_day(as_researcher: Client, run: Run) -> None:
    day = timezone.now().date() + timedelta(days=100)
    make(as_researcher, run, span="date", date=str(day))
    assert Share.objects.get().expires.date() == day + timedelta(days=1)


@pytest.mark.parametrize(
    "fields",
    [
        {"span": ""},
        {"span": "366"},
        {"span": "date"},
        {"span": "date", "date": "soon"},
        {"span": "date", "date": "2020-01-01"},
        {"span": "date", "date": "2999-01-01"},
        {"span": "date", "date": "9999-12-31"},
    ],
)
def test_a_span_that_makes_no_sense_makes_no_link(as_researcher: Client, run: Run, fields: dict[str, str]) -> None:
    response = make(as_researcher, run, **fields)
    assert response.status_code == 400
    assert 'class="field-error"' in response.content.decode()
    assert not Share.objects.exists()


def test_there_are_only_so_many(as_researcher: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "MAX_LINKS", 1)
    assert make(as_researcher, run).status_code == 200
    assert "Revoke one" in make(as_researcher, run).content.decode()
    Share.objects.get().revoke()
    assert make(as_researcher, run).status_code == 200


def test_a_link_that_is_revoked_opens_nothing_and_that_is_recorded_once(as_researcher: Client, run: Run) -> None:
    at = link(run)
    Share.objects.update(created_by=User.objects.get(pk=as_researcher.session["_auth_user_id"]))
    opened(at.path)
    for _ in range(2):
        as_researcher.post(f"/runs/{run.pk}/shares/{at.share.pk}/revoke/")
    assert Client().get(at.path).status_code == 404
    assert AuditEntry.objects.filter(verb="run.unshared", row_pk=run.pk).count() == 1


def test_a_link_is_revoked_under_its_own_run_alone(as_researcher: Client, run: Run) -> None:
    at = link(make_run(run.owner))
    assert as_researcher.post(f"/runs/{run.pk}/shares/{at.share.pk}/revoke/").status_code == 404
    opened(at.path)


def test_an_admin_sees_all_links_and_revokes_them_from_there(client: Client, run: Run) -> None:
    at = link(run)
    client.force_login(member("admin", "ADMIN"))
    page = client.get("/settings/shares/").content.decode()
    assert run.question in page
    assert "Owner Fullname" in page
    response = client.post(f"/runs/{run.pk}/shares/{at.share.pk}/revoke/", {"settings": "yes"})
    assert response["Location"] == "/settings/shares/"
    assert "Revoked" in client.get("/settings/shares/").content.decode()


def test_the_settings_page_takes_as_many_queries_however_many_there_are(client: Client, run: Run) -> None:
    client.force_login(member("admin", "ADMIN"))
    link(run)
    with CaptureQueriesContext(connection) as few:
        client.get("/settings/shares/")
    for _ in range(10):
        link(make_run(run.owner))
    with CaptureQueriesContext(connection) as many:
        client.get("/settings/shares/")
    assert len(many) == len(few)


@pytest.mark.parametrize(("role", "offered"), [("VIEWER", False), ("RESEARCHER", True)])
def test_who_may_share_is_offered_to(client: Client, run: Run, role: str, offered: bool) -> None:
    client.force_login(member("reader", role))
    assert (f"/runs/{run.pk}/shares/" in client.get(f"/runs/{run.pk}/").content.decode()) == offered


@pytest.mark.parametrize(("role", "offered"), [("REVIEWER", False), ("ADMIN", True)])
def test_an_admin_is_led_to_the_history_of_a_run(client: Client, run: Run, role: str, offered: bool) -> None:
    client.force_login(member("reader", role))
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert (f"/settings/audit/?kind=run&amp;row={run.pk}" in page) == offered


def test_no_user_is_needed_to_keep_a_share(run: Run) -> None:
    maker: User = member("maker", "RESEARCHER")
    share, token = Share.issue(run, maker, timezone.now() + timedelta(days=1), names=False, comments=False)
    maker.delete()
    opened(f"/shared/{token}/")
    share.refresh_from_db()
    assert share.created_by is None


# --- the same for scripts ---


def test_a_script_makes_lists_and_revokes_links(run: Run) -> None:
    script = Script(run.owner)
    made = script.post(f"/runs/{run.pk}/shares", {"days": 3, "show_names": True})
    assert made.status_code == 201
    path = made.json()["address"].removeprefix("http://testserver")
    assert "Owner Fullname" in opened(path)
    listed = script.get(f"/runs/{run.pk}/shares").json()["items"]
    assert [(each["id"], each["created_by"], each["views"]) for each in listed] == [
        (made.json()["id"], "Owner Fullname", 1)
    ]
    assert path.split("/")[2] not in str(listed)
    for _ in range(2):
        assert script.send("DELETE", f"/shares/{listed[0]['id']}").status_code == 204
    assert Client().get(path).status_code == 404


@pytest.mark.parametrize("body", [{"days": 0}, {"days": 367}, {"days": "7"}, {"forever": True}])
def test_a_script_is_told_what_is_wrong(run: Run, body: dict[str, Any]) -> None:
    assert Script(run.owner).post(f"/runs/{run.pk}/shares", body).status_code == 422
    assert not Share.objects.exists()


def test_a_script_makes_no_more_links_than_a_person(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "MAX_LINKS", 1)
    script = Script(run.owner)
    assert [script.post(f"/runs/{run.pk}/shares", {}).status_code for _ in range(2)] == [201, 409]
