"""How people are called on pages."""

from __future__ import annotations

from typing import cast

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.template import Context, Template
from django.test import RequestFactory
from django.utils.functional import SimpleLazyObject

from experiments.core.display_name import person

FULL = User(username="teammate", first_name="Team", last_name="<b>Mate</b>")
BARE = User(username="owner")


@pytest.mark.parametrize(
    ("user", "words"),
    [(FULL, "Team <b>Mate</b>"), (BARE, "owner"), (None, "unknown user"), (AnonymousUser(), "unknown user")],
)
def test_a_person_is_called_by_full_name_else_user_name(user: User | None, words: str) -> None:
    assert person(user) == words
    as_requests_have_it = cast("User", SimpleLazyObject(lambda: user))
    assert person(as_requests_have_it) == words


def test_templates_say_the_same_and_escape_it() -> None:
    request = RequestFactory().get("/")
    request.user = FULL
    template = Template("{% load people %}{{ user|person }} {{ nobody|person }}")
    assert template.render(Context({"user": FULL, "nobody": None})) == "Team &lt;b&gt;Mate&lt;/b&gt; unknown user"
