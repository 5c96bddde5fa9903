"""The OpenAPI document is what the API does: schemathesis asks every operation what it should and should not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.conf import settings as project
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from experiments.api import document as documents
from experiments.api import throttling
from experiments.api.interface import api
from experiments.models import Member, Role
from tests.support.api_world import fill, token

CALM = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.large_base_example]
UNSURE = [positive_data_acceptance, negative_data_rejection]
"""Which models there are, no document can say; and what is wrong may become right on its way as text."""
PLAIN = {"Accept-Encoding": "identity"}
"""Schemathesis does not unpack what an application in the same process compresses."""
EXAMPLES = 1
"""Right and wrong requests of each operation, always the same."""


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """The server would close the connection after each request, and with it the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def asked_as(owner: User, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An admin's token, in a filled database, for as many requests as there are."""
    monkeypatch.setattr(throttling, "LIMIT", 10**6)
    Member.objects.filter(user=owner).update(role=Role.ADMIN)
    fill(owner)
    return token(owner)


@pytest.fixture
def document() -> Any:
    schema = schemathesis.openapi.from_dict(json.loads(json.dumps(api.get_openapi_schema())))
    schema.app = get_wsgi_application()
    return schema


def test_no_text_of_a_body_may_be_longer_than_the_body() -> None:
    """JSON may take two bytes for a character."""
    most = project.DATA_UPLOAD_MAX_MEMORY_SIZE
    found = {
        f"{name}.{field}": part["maxLength"]
        for name, schema in api.get_openapi_schema()["components"]["schemas"].items()
        for field, about in schema.get("properties", {}).items()
        for part in (about, about.get("items", {}), *about.get("anyOf", []))
        if 2 * part.get("maxLength", 0) > most
    }
    assert found == {}


def test_a_list_of_units_as_long_as_the_document_says_is_read(owner: User) -> None:
    about = api.get_openapi_schema()["components"]["schemas"]["SweepIn"]["properties"]["units"]
    fill(owner)
    text = "7\n" * (about["maxLength"] // 2)
    wanted = {"model": "toybox", "layers": ["layer4"], "choose": "list", "units": text, "agents": ["scripted"]}
    headers = token(owner)
    said = Client().post("/api/v1/sweeps/forecast", wanted, "application/json", headers=headers)
    assert (said.status_code, said.json().get("units")) == (200, 1)
    longer = Client().post(
        "/api/v1/sweeps/forecast", wanted | {"units": text + "7\n"}, "application/json", headers=headers
    )
    assert longer.status_code == 422


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_each_operation_answers_as_the_document_says(
    document: Any, asked_as: dict[str, str], mode: GenerationMode
) -> None:
    operations = [found.ok() for found in document.get_all_operations()]
    assert len(operations) > 30
    for operation in operations:
        if mode is GenerationMode.POSITIVE or list(operation.iter_parameters()) or operation.body:
            ask(operation, asked_as, mode)


def ask(operation: Any, headers: dict[str, str], mode: GenerationMode) -> None:
    """Whatever is sent, what comes back is declared, and no fault of ours."""

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=CALM,
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def asked(case: Any) -> None:
        case.call_and_validate(headers=headers | PLAIN, excluded_checks=UNSURE)

    asked()


def test_what_the_document_adds_is_of_operations_that_there_are() -> None:
    there = {operation["operationId"] for _, _, operation in documents.operations(api.get_openapi_schema())}
    assert there >= documents.CONFLICTS | documents.ONCE | documents.EDITS
