"""The glossary: every word once, each link leads somewhere, page and API say the same."""

from __future__ import annotations

import re

import pytest
from django.template import Context, Template
from django.test import Client
from django.urls import reverse

from experiments.display.glossary import ENTRIES, SECTIONS
from tests import ROOT

pytestmark = pytest.mark.django_db


def test_every_word_stands_once_and_its_link_leads_to_a_page(as_owner: Client) -> None:
    assert len(ENTRIES) == sum(len(section.entries) for section in SECTIONS)
    for name in {entry.address for entry in ENTRIES.values()} - {""}:
        assert as_owner.get(reverse(name)).status_code == 200, name


def test_page_and_api_say_the_same(as_owner: Client) -> None:
    page = as_owner.get("/glossary/").content.decode()
    words = as_owner.get("/api/v1/glossary").json()
    assert [each["word"] for each in words] == [entry.word for entry in ENTRIES.values()]
    for entry in ENTRIES.values():
        assert f'id="word-{entry.key}"' in page


def test_the_mark_beside_a_heading_leads_to_its_word() -> None:
    drawn = Template("{% load frame %}{% explain 'exemplar-threshold' %}").render(Context())
    assert 'href="/glossary/#word-exemplar-threshold"' in drawn
    assert "What exemplar threshold means" in drawn


def test_every_mark_names_a_word_that_there_is() -> None:
    asked = {
        key
        for path in (ROOT / "templates").rglob("*.html")
        for key in re.findall(r"\{% explain [\"']([\w-]+)[\"'] %\}", path.read_text())
    }
    assert asked <= ENTRIES.keys()
