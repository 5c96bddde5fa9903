"""A form or a host name that is refused: page and log name the cause, and the setting that would help."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.test import Client, RequestFactory

from experiments.core.refusals import MAX_CHARS, find_refusal

pytestmark = pytest.mark.django_db
HTTPS = {"secure": True}


@pytest.fixture
def form() -> Client:
    """A browser whose forms are checked, and that has the cookie of the sign-in page."""
    client = Client(enforce_csrf_checks=True)
    client.get("/sign-in/", headers={"Host": "localhost"})
    return client


def send(form: Client, host: str, origin: str, **options: Any) -> str:
    """What the page says that refuses the form; a token would be taken, if it came to that."""
    data = {"csrfmiddlewaretoken": form.cookies["csrftoken"].value}
    answer = form.post("/sign-in/", data, headers={"Host": host, "Origin": origin}, **options)
    assert answer.status_code == 403
    return answer.content.decode()


def test_a_port_that_the_proxy_leaves_out_is_named(form: Client, caplog: pytest.LogCaptureFixture) -> None:
    said = send(form, "localhost", "http://localhost:8443")
    assert "came from http://localhost:8443" in said
    assert "takes itself to be at http://localhost." in said
    for words in ("the port", "Host $http_host", "MAIA_ORIGINS"):
        assert words in said
    assert "MAIA_HTTPS" not in said
    assert "load the page again" not in said
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "http://localhost:8443" in line
    assert "MAIA_ORIGINS" in line


@pytest.mark.parametrize(("https", "words"), [(False, "Set MAIA_HTTPS=yes"), (True, "MAIA_HTTPS is on:")])
def test_a_scheme_that_the_proxy_does_not_tell_is_named(form: Client, settings, https: bool, words: str) -> None:
    settings.HTTPS = https
    said = send(form, "localhost", "https://localhost")
    assert words in said
    assert "X-Forwarded-Proto: https" in said
    assert "http_host" not in said


def test_a_host_name_that_the_proxy_does_not_pass_on_is_named(form: Client) -> None:
    said = send(form, "localhost", "https://maia.example.org", **HTTPS)
    assert "the host name" in said
    assert "add it to MAIA_ORIGINS" in said


def test_an_origin_is_hostile_text_of_any_length(form: Client, caplog: pytest.LogCaptureFixture) -> None:
    origin = "https://<script>alert(1)</script>" + "x" * 5000
    said = send(form, "localhost", origin)
    assert "<script>alert" not in said
    assert "&lt;script&gt;" in said
    assert "x" * MAX_CHARS not in said
    assert "x" * 3 * MAX_CHARS not in caplog.text


@pytest.mark.parametrize("origin", ["null", "http://[", "nonsense"])
def test_an_origin_that_is_no_address_is_refused_in_words(form: Client, origin: str) -> None:
    assert "Sending it again does not help" in send(form, "localhost", origin)


def test_over_https_a_referer_of_another_host_is_named(form: Client) -> None:
    data = {"csrfmiddlewaretoken": form.cookies["csrftoken"].value}
    headers = {"Host": "localhost", "Referer": "https://maia.example.org/sign-in/?next=/secret/"}
    said = form.post("/sign-in/", data, headers=headers, **HTTPS).content.decode()
    assert "came from https://maia.example.org," in said
    assert "secret" not in said


def test_a_missing_cookie_is_not_a_page_out_of_date(settings) -> None:
    said = Client(enforce_csrf_checks=True).post("/sign-in/").content.decode()
    assert "The browser sent no cookie" in said
    assert "administrator" not in said
    settings.HTTPS = True
    assert "MAIA_HTTPS is on" in Client(enforce_csrf_checks=True).post("/sign-in/").content.decode()


def test_a_token_of_an_earlier_page_is_one_out_of_date(form: Client) -> None:
    said = form.post("/sign-in/", {"csrfmiddlewaretoken": "a" * 32}).content.decode()
    assert "The page was out of date" in said
    assert "administrator" not in said


def test_a_reason_that_django_adds_counts_as_out_of_date() -> None:
    assert find_refusal(RequestFactory().post("/"), "Something new.").title == "The page was out of date"


def test_a_host_that_is_not_the_sites_is_named_with_its_setting(
    client: Client, settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ALLOWED_HOSTS = ["maia.example.org"]
    answer = client.get("/sign-in/", headers={"Host": "other.example.org:8443"})
    assert answer.status_code == 400
    assert "asked for as other.example.org:8443" in answer.content.decode()
    assert "MAIA_HOSTS" in answer.content.decode()
    (line,) = [each.getMessage() for each in caplog.records if each.name == "experiments.core.refusals"]
    assert "'other.example.org:8443'" in line
    assert "MAIA_HOSTS, which is maia.example.org" in line
