"""The page that explains the API: every operation, each told of when it is opened."""

from __future__ import annotations

import re

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


def test_the_page_explains_every_operation(as_owner: Client) -> None:
    document = as_owner.get("/api/v1/openapi.json").json()
    page = as_owner.get("/api/v1/docs").content.decode()
    names = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert len(names) == len(set(names)) > 40
    assert [name for name in names if f'id="{name}"' not in page] == []


def test_what_an_operation_takes_comes_when_it_is_opened(as_owner: Client) -> None:
    whole = as_owner.get("/api/v1/docs").content.decode()
    link = re.search(r'<a href="(\?operation=(\w+))#\2" data-inside>', whole)
    assert link
    assert "Takes" not in whole
    inside = as_owner.get(f"/api/v1/docs{link[1]}", headers={"HX-Request": "true"}).content.decode()
    assert "curl" in inside
    assert "<main" not in inside
    without_scripts = as_owner.get(f"/api/v1/docs{link[1]}").content.decode()
    assert f'id="{link[2]}" open>' in without_scripts
    assert "curl" in without_scripts
    assert as_owner.get("/api/v1/docs?operation=x", headers={"HX-Request": "true"}).status_code == 404
