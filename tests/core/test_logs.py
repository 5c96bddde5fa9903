"""Lines of the log: plain or JSON, about a run or a request, without tokens; and a request's id, there and back."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core.logs import Json, Plain, logging_about

FORMATS = {"plain": Plain("{asctime} {levelname} {name}: {message}", style="{"), "json": Json()}


def line(kind: str, words: str, *given: Any, error: bool = False) -> str:
    about = sys.exc_info() if error else None
    return FORMATS[kind].format(logging.LogRecord("maia.test", logging.WARNING, "", 0, words, given, about))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_line_says_what_it_is_about(kind: str) -> None:
    with logging_about(run=7), logging_about(round=2):
        said = line(kind, "Trouble with %s.", "a tool")
    after = line(kind, "Later.")
    if kind == "json":
        found = json.loads(said)
        assert (found["run"], found["round"], found["message"]) == ("7", "2", "Trouble with a tool.")
        assert found["time"].endswith("+00:00")
        assert "run" not in json.loads(after)
    else:
        assert said.endswith("maia.test: Trouble with a tool. [run=7 round=2]")
        assert "[" not in after


@pytest.mark.parametrize("kind", FORMATS)
def test_a_line_does_nothing_to_the_terminal(kind: str) -> None:
    said = line(kind, "Trouble with %s.", "\x1b[2J\x9b2J\u202etxt")
    assert {"\x1b", "\x9b", "\u202e"}.isdisjoint(said)
    assert said.isprintable()
    assert "\\u202etxt" in said


@pytest.mark.parametrize("kind", FORMATS)
def test_a_traceback_tells_no_secret_and_json_stays_one_line(kind: str) -> None:
    try:
        raise ValueError("GET /shared/a1b2c3/images\nand a second line")
    except ValueError:
        said = line(kind, "Broken at %s", "/enter/d4e5f6/", error=True)
    assert "d4e5f6" not in said
    assert "ValueError: GET /shared/…/images" in said
    assert "ValueError" in said
    if kind == "json":
        assert "\n" not in said
        assert "second line" in json.loads(said)["error"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "taken"), [("proxy-0123456789", True), ("short", False), ("x" * 65, False), ('a"b\\c d{}[]', False)]
)
def test_a_request_has_an_id(client: Client, owner: User, given: str, taken: bool) -> None:
    client.force_login(owner)
    answer = client.get("/runs/", headers={"x-request-id": given})
    name = answer.headers["X-Request-ID"]
    assert (name == given) == taken
    assert len(name) >= 8
    assert client.get("/runs/").headers["X-Request-ID"] != client.get("/runs/").headers["X-Request-ID"]


@pytest.mark.django_db
def test_what_is_logged_for_a_request_names_it(client: Client) -> None:
    said: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(FORMATS["json"].format(record))

    handler = Keeping()
    logging.getLogger("django.request").addHandler(handler)
    try:
        client.get("/nowhere/at/all", headers={"x-request-id": "from-the-proxy"})
    finally:
        logging.getLogger("django.request").removeHandler(handler)
    assert [json.loads(each)["request"] for each in said] == ["from-the-proxy"]
