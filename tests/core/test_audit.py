"""The audit: what it records, and that neither our code nor the database changes it afterwards."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.http import HttpRequest
from django.test import RequestFactory

from experiments.core import audit, client_ip
from experiments.core.actors import Actor
from experiments.models import ApiToken, AuditEntry
from experiments.models.audit import AppendOnly
from tests.support.builders import make_run


def request_by(user: object, **headers: str) -> HttpRequest:
    request = RequestFactory().get("/", headers=headers)
    request.user = user
    return request


# --- what is recorded ---


def test_it_says_who_did_what_to_which_row_from_where(owner: User) -> None:
    run = make_run(owner)
    agent = {"User-Agent": "curl/8.0 " + "x" * 500}
    audit.record(request_by(owner, **agent), "run.paused", run, why="to look", rounds=3)
    entry = AuditEntry.objects.get()
    assert (entry.user, entry.name, entry.verb) == (owner, "owner", "run.paused")
    assert (entry.row_kind, entry.row_pk, entry.row_words) == ("run", run.pk, str(run))
    assert entry.details == {"why": "to look", "rounds": 3}
    assert (entry.address, entry.agent[:8], len(entry.agent), entry.token) == ("127.0.0.1", "curl/8.0", 200, "")


def test_it_names_the_token_that_a_script_used(owner: User) -> None:
    token, text = ApiToken.issue(owner, "nightly report")
    request = request_by(owner)
    request.auth = token
    audit.record(request, "run.stopped")
    told = AuditEntry.objects.get().token
    assert told == f"{text[:11]}… nightly report"
    assert text not in told


def test_what_the_installation_does_has_no_name(db: None) -> None:
    audit.record(Actor(None), "run.found")
    assert (AuditEntry.objects.get().user, AuditEntry.objects.get().name) == (None, "")


def test_an_entry_outlives_the_person_and_the_row(owner: User) -> None:
    run = make_run(owner)
    audit.record(request_by(owner), "run.paused", run)
    words = str(run)
    run.delete()
    owner.delete()
    entry = AuditEntry.objects.get()
    assert (entry.name, entry.row_words) == ("owner", words)


def test_text_that_no_database_takes_is_made_fit(owner: User) -> None:
    audit.record(Actor(owner), "run.paused", None, why="a\x00b\ud800", far=float("inf"), long="x" * 5000)
    details = AuditEntry.objects.get().details
    assert details["why"] == "a\ufffdb?"
    assert details["far"] == "inf"
    assert len(details["long"]) == 1000


def test_what_is_undone_is_not_recorded(owner: User) -> None:
    with transaction.atomic():
        audit.record(Actor(owner), "run.paused")
        transaction.set_rollback(True)
    assert not AuditEntry.objects.exists()


# --- it is append-only ---


def test_our_code_neither_changes_nor_removes_it(owner: User) -> None:
    audit.record(Actor(owner), "run.paused")
    entry = AuditEntry.objects.get()
    entry.verb = "run.resumed"
    for attempt in (
        entry.save,
        entry.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(verb="x"),
        lambda: AuditEntry.objects.bulk_update([entry], ["verb"]),
    ):
        with pytest.raises(AppendOnly), transaction.atomic():
            attempt()
    assert AuditEntry.objects.get().verb == "run.paused"


@pytest.mark.parametrize(
    "statement", ["UPDATE experiments_auditentry SET verb = 'x'", "DELETE FROM experiments_auditentry"]
)
def test_the_database_neither_changes_nor_removes_it(owner: User, statement: str) -> None:
    audit.record(Actor(owner), "run.paused")
    with connection.cursor() as cursor, pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        cursor.execute(statement)
    assert AuditEntry.objects.get().verb == "run.paused"


@pytest.mark.skipif(connection.vendor != "sqlite", reason="REPLACE is a word of SQLite's")
@pytest.mark.parametrize("words", ["REPLACE INTO", "INSERT OR REPLACE INTO", "INSERT OR IGNORE INTO"])
def test_an_entry_is_not_replaced(owner: User, words: str) -> None:
    audit.record(Actor(owner), "run.paused")
    names = [field.column for field in AuditEntry._meta.concrete_fields]
    columns = ", ".join("'x'" if name == "verb" else f'"{name}"' for name in names)
    statement = f"{words} experiments_auditentry ({', '.join(names)}) SELECT {columns} FROM experiments_auditentry"
    with connection.cursor() as cursor, pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        cursor.execute(statement)
    assert AuditEntry.objects.get().verb == "run.paused"
    audit.record(Actor(owner), "run.resumed")
    assert AuditEntry.objects.count() == 2


@pytest.mark.skipif(connection.vendor != "postgresql", reason="TRUNCATE is a word of PostgreSQL's")
def test_the_table_is_not_emptied(owner: User) -> None:
    audit.record(Actor(owner), "run.paused")
    with connection.cursor() as cursor, pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        cursor.execute("TRUNCATE experiments_auditentry CASCADE")
    assert AuditEntry.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_refusals_are_in_place_after_tables_were_emptied(owner: User) -> None:
    audit.record(Actor(owner), "run.paused")
    with connection.cursor() as cursor, pytest.raises(IntegrityError, match="append-only"):
        cursor.execute("DELETE FROM experiments_auditentry")


# --- from where ---


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "", "127.0.0.1"),
        (0, "6.6.6.6", "127.0.0.1"),
        (1, "", "127.0.0.1"),
        (1, "203.0.113.7", "203.0.113.7"),
        (1, "6.6.6.6, 203.0.113.7", "203.0.113.7"),
        (2, "6.6.6.6, 203.0.113.7, 10.0.0.2", "203.0.113.7"),
        (2, "203.0.113.7", "203.0.113.7"),
        (1, "203.0.113.7:4711", "203.0.113.7"),
        (1, "[2001:db8::1]:443", "2001:db8::1"),
        (1, "::ffff:203.0.113.7", "203.0.113.7"),
        (1, "<script>", "127.0.0.1"),
        (1, " , ,", "127.0.0.1"),
    ],
)
def test_only_proxies_of_ours_are_believed(settings, proxies: int, forwarded: str, address: str) -> None:
    settings.TRUSTED_PROXIES = proxies
    request = RequestFactory().get("/", headers={"X-Forwarded-For": forwarded} if forwarded else {})
    assert client_ip.address(request) == address


def test_a_connection_without_an_address_has_none(rf: RequestFactory) -> None:
    assert client_ip.address(rf.get("/", REMOTE_ADDR="")) is None
