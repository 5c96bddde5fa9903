"""Numbers that no database keeps: wherever a script or a form may write one, it is refused with a sentence."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import cycle
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import resolve

from experiments.api import throttling
from experiments.api.interface import api
from experiments.core.params import MAX_INTEGER
from experiments.models import Member, Role, Sweep, SweepStatus
from tests.support.api_world import Script, World, fill

Json = dict[str, Any]
LARGE = (2**63, 2**64, 10**30)
DOCUMENT: Json = api.get_openapi_schema()
OPERATIONS = [
    (method, path, operation) for path, methods in DOCUMENT["paths"].items() for method, operation in methods.items()
]


@pytest.fixture
def admin(db: None) -> User:
    user = User.objects.create_user("admin")
    Member.objects.create(user=user, role=Role.ADMIN)
    return user


@pytest.fixture
def world(admin: User, no_redis: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One of each; a sweep that may be changed. Thousands of refusals are no news."""
    monkeypatch.setattr(throttling, "LIMIT", 10**7)
    made = fill(admin)
    Sweep.objects.update(status=SweepStatus.RUNNING)
    logging.disable(logging.CRITICAL)
    yield made
    logging.disable(logging.NOTSET)


# --- the API ---


def follow(schema: Json) -> Json:
    """What a schema refers to; of several possibilities the first that is not null."""
    if "$ref" in schema:
        return follow(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if several := schema.get("anyOf"):
        return follow(next(each for each in several if each.get("type") != "null"))
    return schema


def list_integers(schema: Json, place: str) -> Iterator[tuple[str, Json]]:
    """Each place below where a whole number may stand."""
    if "$ref" in schema:
        schema = follow(schema)
    if schema.get("type") == "integer" and "enum" not in schema:
        yield place, schema
    for each in schema.get("anyOf", ()):
        yield from list_integers(each, place)
    if "items" in schema:
        yield from list_integers(schema["items"], f"{place}[]")
    for name, each in schema.get("properties", {}).items():
        yield from list_integers(each, f"{place}.{name}")


def read_body(operation: Json) -> Json | None:
    """The schema of what an operation is sent as JSON."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return follow(content["schema"]) if content else None


def test_every_whole_number_that_the_api_takes_is_bounded() -> None:
    unbounded = []
    for method, path, operation in OPERATIONS:
        given = [(each["schema"], each["name"]) for each in operation.get("parameters", ())]
        given += [(each["schema"], "body") for each in operation.get("requestBody", {}).get("content", {}).values()]
        for schema, name in given:
            for place, found in list_integers(schema, name):
                if not found.get("maximum", found.get("exclusiveMaximum", MAX_INTEGER + 1)) <= MAX_INTEGER:
                    unbounded.append(f"{method} {path} {place}")
    assert unbounded == []


WORDS = {"model": "toybox", "layer": "layer4", "dataset": "toybox", "backbone": "scripted", "unit": 1, "what": "runs"}


def sample(schema: Json, name: str = "") -> Any:
    """A value that a schema takes: its example, else one of its type."""
    schema = follow(schema)
    if name in WORDS:
        return WORDS[name]
    if known := schema.get("examples", schema.get("enum")):
        return known[0]
    if "properties" in schema:
        return {each: sample(schema["properties"][each], each) for each in schema.get("required", ())}
    usual = {"integer": 1, "number": 1.0, "boolean": True, "string": "Enough.", "object": {}}
    return [sample(schema["items"])] if schema["type"] == "array" else usual[schema["type"]]


def spoil(schema: Json, body: Json, number: int) -> Iterator[Json]:
    """The body with the number in place of each value, and of each value within one."""
    for name, each in schema.get("properties", {}).items():
        found = follow(each)
        for inner in spoil(found, sample(found) if "properties" in found else {}, number):
            yield body | {name: inner}
        written: list[Any] = [number, str(number)]
        yield from (body | {name: [value] if found.get("type") == "array" else value} for value in written)


@pytest.mark.more
@pytest.mark.parametrize("number", LARGE, ids=["2^63", "2^64", "10^30"])
def test_no_body_and_no_parameter_of_the_api_breaks_it(admin: User, world: World, number: int) -> None:
    script = Script(admin)
    script.client.raise_request_exception = False
    known = {"pk": world.run.pk, "kind": "checks", **world.places}
    faults, tried = [], 0

    def ask(method: str, path: str, body: Json | None = None) -> None:
        nonlocal tried
        tried += 1
        with transaction.atomic():
            if script.send(method.upper(), path, body).status_code >= 500:
                faults.append((method, path, body))
            transaction.set_rollback(True)

    for method, path, operation in OPERATIONS:
        place = path.removeprefix("/api/v1")
        for each in operation.get("parameters", ()):
            if each["in"] == "path":
                ask(method, place.format_map(known | {each["name"]: number}))
            elif each["in"] == "query":
                ask(method, f"{place.format_map(known)}?{each['name']}={number}")
        if schema := read_body(operation):
            for body in spoil(schema, sample(schema), number):
                ask(method, place.format_map(known), body)
    assert faults == []
    assert tried > 500


# --- pages ---


class FormReader(HTMLParser):
    """The links of a page, and of each form where it goes, how, and what it has been filled in with."""

    def __init__(self, page: str, text: str) -> None:
        super().__init__()
        self.page, self.links, self.forms = page, [], []  # type: ignore[var-annotated]
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        if tag == "a" and has.get("href", "").startswith("/"):
            self.links.append(has["href"].partition("#")[0])
        elif tag == "form":
            self.forms.append((has.get("method", "get").lower(), has.get("action") or self.page, {}))
        elif tag in {"input", "select", "textarea", "button"} and has.get("name") and self.forms:
            self.forms[-1][2].setdefault(has["name"], has.get("value", ""))


def crawl(client: Client) -> Iterator[FormReader]:
    """One page of each address, as links lead to it."""
    sweep = Sweep.objects.latest("pk").get_absolute_url()
    waiting, seen = ["/", sweep, "/review/new/?status=concluded"], set()
    while waiting:
        path = waiting.pop(0)
        where = resolve(path.partition("?")[0])
        if (key := where.url_name or where.route) in seen or path.startswith("/api/"):
            continue
        seen.add(key)
        response = client.get(path)
        if response.headers["Content-Type"].startswith("text/html") and not response.streaming:
            page = FormReader(path, response.content.decode())
            waiting += page.links
            yield page


def list_forms(client: Client) -> dict[tuple[str, str], dict[str, str]]:
    """Every form that the crawl meets, once for each address that it is sent to: its fields with their values."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for page in crawl(client):
        for method, action, fields in page.forms:
            place = re.sub(r"\d+", "1", action.partition("?")[0])
            found.setdefault((method, place), {}).update(fields)
            found[method, place]["@"] = action
    return {key: fields for key, fields in found.items() if key[1] != "/sign-out/"}


@pytest.mark.more
def test_no_field_of_a_form_breaks_its_page(admin: User, world: World, client: Client) -> None:
    client.force_login(admin)
    client.raise_request_exception = False
    forms = list_forms(client)
    assert {("post", "/sweeps/1/change/"), ("post", "/review/new/")} <= forms.keys()
    assert len(forms) > 30
    faults, numbers = [], cycle(LARGE)
    for (method, _), fields in forms.items():
        action = fields.pop("@")
        for name in fields:
            number = next(numbers)
            with transaction.atomic():
                response = getattr(client, method)(action, fields | {name: str(number)})
                transaction.set_rollback(True)
            if response.status_code >= 500:
                faults.append((method, action, name, number))
    assert faults == []


def test_what_broke_is_refused_with_a_sentence(admin: User, world: World, client: Client) -> None:
    client.force_login(admin)
    sweep = world.sweep.pk
    for number in LARGE:
        response = Script(admin).send("PATCH", f"/sweeps/{sweep}", {"tokens": number})
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "tokens")
        page = client.post(f"/sweeps/{sweep}/change/", {"token_limit": str(number)}, follow=True)
        assert "is more than 1e+15: write less, or none" in page.content.decode()
        sent = {"name": "Mine", "reviewers_per_item": "1", "reviewers": str(number)}
        queue = client.post("/review/new/?status=running", sent)
        assert queue.status_code == 422
        assert f"{number} is not one of the available choices" in queue.content.decode()
    assert Sweep.objects.get(pk=sweep).token_limit is None
