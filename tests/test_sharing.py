"""Links to a run for outsiders: what they show and hide, when they open, who makes and revokes them."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from PIL import Image as Pillow

from experiments import transcript
from experiments.models import AuditEntry, Comment, Image, Run, Share, Thread
from experiments.security import Discreet
from experiments.sharing import issuing, pages
from tests.builders import as_json, experiment, make_run, replied, result, started
from tests.conftest import member
from workers.agent.events import (
    Conclusion,
    Ended,
    Forked,
    Halted,
    Handed,
    Limits,
    Paused,
    Payload,
    Relimited,
    Remarked,
    Resumed,
    Troubled,
)
from workers.jobs.images import ImagesInDatabase
from workers.protocols import Provenance

OPENLY = {"show_names": True, "show_comments": True}


def picture(shade: int) -> str:
    images = ImagesInDatabase()
    key = images.remember(Pillow.new("RGB", (40, 30), (shade, 80, 120)), Provenance(origin="generated"))
    images.flush()
    return key


def keep(run: Run, *steps: tuple[str, Payload]) -> None:
    for kind, payload in steps:
        transcript.append(run.pk, kind, as_json(payload))
    run.refresh_from_db()


@pytest.fixture
def run(db: None) -> Run:
    """Everything that can happen in a run, done by people whose names are easily found again."""
    owner = member("owner-login", "RESEARCHER")
    owner.first_name, owner.last_name = "Owner", "Fullname"
    owner.save()
    run = make_run(owner)
    who = "Owner Fullname"
    keep(
        run,
        ("started", started()),
        ("reply", replied(author="gpt-4o", prose="I expect red.")),
        ("experiment", experiment()),
        ("result", result(images=(picture(1), picture(2)))),
        ("trouble", Troubled(1, 1, "no route to host gpu.internal")),
        ("halted", Halted(1, "Put a key into /etc/secret")),
        ("resumed", Resumed(1, who)),
        ("paused", Paused(1, "owner-login")),
        ("resumed", Resumed(1, "owner-login")),
        ("remark", Remarked(1, who, "Look at <b>blue</b>.")),
        ("limits", Relimited(1, who, "more time", Limits(rounds=30), Limits())),
        ("handed", Handed(1, who, "person", label="a person")),
        ("reply", replied(2, author=who, prose="I looked myself.")),
        ("forked", Forked(2, who, 999, {"seed": "7"})),
        ("handed", Handed(2, who, "openai", label="gpt-4o")),
        ("reply", replied(3, author="owner-login", prose="Sent before it was handed over.")),
    )
    return run


@pytest.fixture
def discussed(run: Run) -> Run:
    """With comments on the run and on an event."""
    for thread in (Thread.objects.create(run=run, on="run"), Thread.objects.create(run=run, on="event", seq=2)):
        Comment.objects.create(thread=thread, author=run.owner, text="Too few, @owner-login.")
        Comment.objects.create(thread=thread, author=run.owner, text="Thought better.", deleted=timezone.now())
    return run


@dataclass
class Link:
    share: Share
    token: str

    @property
    def path(self) -> str:
        return f"/shared/{self.token}/"


def link(run: Run, days: float = 7, **shows: bool) -> Link:
    names, comments = shows.get("show_names", False), shows.get("show_comments", False)
    expires = timezone.now() + timedelta(days=days)
    return Link(*Share.issue(run.pk, run.owner, expires, names=names, comments=comments))


def opened(path: str, client: Client | None = None) -> str:
    response = (client or Client()).get(path)
    assert response.status_code == 200
    return response.content.decode()


# --- what it shows ---


def test_anybody_with_the_link_reads_the_transcript_with_its_images(run: Run) -> None:
    keep(run, ("concluded", Ended(conclusion=Conclusion("It responds to red balls.", ("red balls",)))))
    page = opened(link(run).path)
    for words in (
        "I expect red.",
        "I looked myself.",
        "Result of experiment 1",
        "image 1",
        "It responds to red balls.",
    ):
        assert words in page
    assert page.count("<img ") == 2


NAMES = ("Owner", "Fullname", "owner-login")


def test_no_name_is_shown_unless_it_was_asked_for(discussed: Run) -> None:
    page = opened(link(discussed).path)
    assert not [name for name in NAMES if name in page]
    assert "Paused</b> by a person" in page
    assert '<h2>Round 2 <span class="quiet">a person' in page
    assert "gpt-4o" in page, "the agent's name is no person's"
    assert "Too few" not in page


def test_a_name_stays_hidden_where_comments_are_shown(discussed: Run) -> None:
    page = opened(link(discussed, show_comments=True).path)
    assert page.count("Too few, @…") == 2
    assert "Person 1" in page
    assert not [name for name in NAMES if name in page]


def test_names_and_comments_are_shown_where_they_were_asked_for(discussed: Run) -> None:
    page = opened(link(discussed, **OPENLY).path)
    assert "Owner Fullname" in page
    assert "Too few, @owner-login." in page
    assert "Thought better." not in page


@pytest.mark.parametrize("shows", [{}, OPENLY])
def test_a_person_who_stopped_the_run_is_named_only_if_asked(run: Run, shows: dict[str, bool]) -> None:
    keep(run, ("cancelled", Ended("Stopped by owner-login.")))
    assert ("Stopped by owner-login." in opened(link(run, **shows).path)) == bool(shows)


@pytest.mark.parametrize("shows", [{}, OPENLY])
def test_what_broke_on_our_side_is_never_shown(run: Run, shows: dict[str, bool]) -> None:
    keep(run, ("failed", Ended("Out of disk: /srv/private")))
    page = opened(link(run, **shows).path)
    assert not [words for words in ("gpu.internal", "/etc/secret", "/srv/private") if words in page]


class Addresses(HTMLParser):
    """Every address in a page, and whether there is a script or a form."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found += [value or "" for name, value in attrs if name in {"href", "src", "action", "srcset", "hx-get"}]


@pytest.mark.parametrize("shows", [{}, OPENLY])
def test_no_address_leads_into_the_application(discussed: Run, shows: dict[str, bool]) -> None:
    at = link(discussed, **shows)
    parser = Addresses()
    parser.feed(opened(at.path))
    inside = [each for each in parser.found if not each.startswith(("/static/", at.path, "#", "?"))]
    assert inside == []
    assert not parser.tags & {"script", "form", "iframe"}


def test_words_of_others_are_escaped(run: Run) -> None:
    page = opened(link(run).path)
    assert "Look at &lt;b&gt;blue&lt;/b&gt;." in page


def test_a_run_under_way_is_shown_as_of_now(run: Run) -> None:
    at = link(run)
    page = opened(at.path)
    assert "This run is under way." in page
    assert f'<a class="button" href="{at.path}">Reload</a>' in page
    keep(run, ("reply", replied(4, prose="Something new.")))
    assert "Something new." in opened(at.path)


def test_a_run_that_has_not_begun_says_so(db: None) -> None:
    assert "Nothing has happened yet" in opened(link(make_run(member("owner", "RESEARCHER"))).path)


def test_a_long_run_comes_in_pages_and_takes_as_many_queries_each(
    discussed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = link(discussed, **OPENLY)
    with CaptureQueriesContext(connection) as whole:
        opened(at.path)
    monkeypatch.setattr(pages, "PER_PAGE", 5)
    with CaptureQueriesContext(connection) as first:
        page = opened(at.path)
    assert "I expect red." in page
    assert "I looked myself." not in page
    assert 'href="?page=2"' in page
    assert len(first) <= len(whole)
    assert "I looked myself." in opened(f"{at.path}?page=3")
    for senseless in ("x", "-1", "99", "9" * 40):
        opened(f"{at.path}?page={senseless}")


# --- how it is sent ---


def test_it_is_neither_stored_nor_listed_nor_told_to_others(run: Run) -> None:
    at = link(run)
    key = Image.objects.values_list("key", flat=True)[0]
    for path in (at.path, f"{at.path}images/{key}.png", "/shared/nothing/"):
        response = Client().get(path)
        assert response["Cache-Control"] == "private, no-store"
        assert response["Referrer-Policy"] == "no-referrer"
        assert response["X-Robots-Tag"].startswith("noindex")
        assert "script-src" not in response["Content-Security-Policy"]
        assert not response.cookies
    assert '<meta name="robots" content="noindex' in opened(at.path)


@pytest.mark.parametrize("tail", ["{key}.png", "{key}/thumb-160.webp", "{key}/thumb-320.webp"])
def test_images_of_the_run_are_sent_and_no_others(run: Run, tail: str) -> None:
    at = link(run)
    own, other = Image.objects.values_list("key", flat=True)[0], picture(77)
    response = Client().get(f"{at.path}images/{tail.format(key=own)}")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("image/")
    for key in (other, "0" * 64):
        assert Client().get(f"{at.path}images/{tail.format(key=key)}").status_code == 404
    assert Client().get(f"/shared/{'x' * 43}/images/{tail.format(key=own)}").status_code == 404
    assert Client().get(f"{at.path}images/{own}/thumb-999.webp").status_code == 404


def test_it_is_read_and_nothing_else(run: Run) -> None:
    assert Client().post(link(run).path).status_code == 405


# --- when it opens ---


def spoilt(run: Run) -> dict[str, str]:
    """Links that are not good, each for a reason of its own."""
    revoked, expired = link(run), link(run, days=-1)
    revoked.share.revoke()
    return {"revoked": revoked.path, "expired": expired.path, "wrong": f"/shared/{'x' * 43}/", "odd": "/shared/%00é/"}


def test_revoked_expired_and_wrong_links_are_told_apart_by_nobody(run: Run) -> None:
    answers, queries = set(), set()
    for path in spoilt(run).values():
        with CaptureQueriesContext(connection) as asked:
            response = Client().get(path)
        answers.add((response.status_code, response.content, tuple(sorted(response.headers.items()))))
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
    assert formats["class"] == f"{Discreet.__module__}.{Discreet.__name__}"
    formatter = Discreet(formats["format"], style=formats["style"])
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
    monkeypatch.setattr(issuing, "MOST", 1)
    assert make(as_researcher, run).status_code == 200
    assert "Revoke one" in make(as_researcher, run).content.decode()
    Share.objects.get().revoke()
    assert make(as_researcher, run).status_code == 200


def test_a_link_that_is_revoked_opens_nothing_and_that_is_recorded_once(as_researcher: Client, run: Run) -> None:
    at = link(run)
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
    share, token = Share.issue(run.pk, maker, timezone.now() + timedelta(days=1), names=False, comments=False)
    maker.delete()
    opened(f"/shared/{token}/")
    share.refresh_from_db()
    assert share.created_by is None
