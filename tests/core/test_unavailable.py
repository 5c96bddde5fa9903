"""A database that is locked, a disk that is full: a request is answered with 503, and told that it may come again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection
from django.test import Client

from experiments.core.outages import explain_outage
from experiments.models import Import
from tests.support.api_world import Script
from tests.support.builders import make_run
from tests.support.database_lock import locked_database

pytestmark = pytest.mark.django_db(transaction=True)
BUNDLE = b"PK\x03\x04"


def is_unavailable(response: Any, words: str) -> None:
    """503, with what is the matter, and that it is not the request's fault."""
    text = response.content.decode()
    assert response.status_code == 503, text
    assert int(response["Retry-After"]) > 0
    assert words in text
    assert "no fault of your request: try again in a moment" in text
    assert "our fault" not in text


@pytest.fixture
def browser(owner: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(owner)
    return client


@pytest.fixture
def script(owner: User) -> Script:
    script = Script(owner)
    script.client = Client(raise_request_exception=False)
    assert script.get("/me").status_code == 200  # the use of its token is noted now and then
    return script


def test_the_api_says_that_the_database_is_locked(script: Script, owner: User, no_redis: None) -> None:
    run = make_run(owner)
    with locked_database("experiments_run"):
        response = script.post(f"/runs/{run.pk}/stop")
    is_unavailable(response, "Another process holds the database locked.")
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["type"].endswith("#problem-unavailable")
    run.refresh_from_db()
    assert not run.cancel_requested
    assert script.post(f"/runs/{run.pk}/stop").status_code == 200


def test_a_page_says_that_the_database_is_locked(browser: Client, owner: User, no_redis: None) -> None:
    run = make_run(owner)
    with locked_database("experiments_run"):
        response = browser.post(f"/runs/{run.pk}/stop/")
    is_unavailable(response, "Another process holds the database locked.")
    assert "<h1>Temporarily unavailable</h1>" in response.content.decode()
    assert browser.post(f"/runs/{run.pk}/stop/").status_code == 302


def test_a_mistake_of_ours_is_no_outage() -> None:
    """SQLite has one class of errors for both."""
    with pytest.raises(Exception, match="no_such_table") as caught, connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM no_such_table")
    assert explain_outage(caught.value) == ""
    assert "does not answer" in explain_outage(OperationalError("server closed the connection unexpectedly"))


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files that are made until they are whole lie on a device that the kernel says is full."""

    def make_full(**_: Any) -> tuple[int, str]:
        return os.open("/dev/full", os.O_WRONLY), str(tmp_path / "none")

    monkeypatch.setattr(tempfile, "mkstemp", make_full)


FULL = "There is no room left on the disk of the web server."


def test_an_upload_says_that_the_disk_is_full(script: Script, browser: Client, full_disk: None) -> None:
    given = {"kind": "bundle", "file": BUNDLE}
    is_unavailable(script.upload("/imports", given), FULL)
    is_unavailable(script.upload("/imports/batch", given), FULL)
    page = browser.post("/imports/bring/", {"kind": "bundle", "file": SimpleUploadedFile("one.zip", BUNDLE)})
    is_unavailable(page, FULL)
    assert not Import.objects.exists()
