"""Links to units, and the card that such a link shows."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.template import Context, Template
from django.test import Client
from django.urls import reverse

from experiments.core.system_names import SystemNameMasker
from experiments.models import Run, VisionModelRow
from tests.support.blind_runs import TOLD, queued
from tests.support.builders import make_run
from tests.support.unit_pages import MARKUP, RESNET, concluded, labelled, layer_of, measured

pytestmark = pytest.mark.django_db


def card_of(client: Client, number: int = 7) -> str:
    response = client.get(reverse("unit-card", args=[RESNET, "layer4", number]))
    assert response.status_code == 200
    assert "private" in response["Cache-Control"]
    return response.content.decode()


def test_a_card_shows_exemplars_label_state_and_runs(as_owner: Client, owner: User, resnet: VisionModelRow) -> None:
    concluded(owner)
    measured(labelled(layer_of(resnet), 7, MARKUP))
    card = card_of(as_owner)
    assert "red balls" in card
    assert card.count("<img") == 2
    assert "Concluded" in card
    assert "1 run" in card
    assert MARKUP not in card  # it is escaped, and the label of the run stands for the unit


def test_a_card_of_a_unit_that_nobody_asked_about_says_so(as_owner: Client, resnet: VisionModelRow) -> None:
    card = card_of(as_owner, 9)
    assert "No exemplars yet" in card
    assert "Not investigated" in card


def test_a_card_takes_the_same_queries_however_much_is_known(
    as_owner: Client, owner: User, resnet: VisionModelRow, django_assert_max_num_queries: object
) -> None:
    concluded(owner)
    measured(labelled(layer_of(resnet), 7, *(f"label {n}" for n in range(30))))
    with django_assert_max_num_queries(14):  # type: ignore[operator]
        card_of(as_owner)


def test_strangers_see_no_card(client: Client, resnet: VisionModelRow) -> None:
    client.force_login(User.objects.create_user("stranger"))
    assert client.get(reverse("unit-card", args=[RESNET, "layer4", 7])).status_code == 404


def test_a_mention_of_a_unit_is_a_link_with_its_card(owner: User, resnet: VisionModelRow) -> None:
    run = make_run(owner, model=RESNET, unit=7)
    drawn = Template("{% load units %}{% unit_link run %}").render(
        Context({"run": run, "names": SystemNameMasker(owner)})
    )
    assert f'href="{reverse("unit", args=[RESNET, "layer4", 7])}"' in drawn
    assert f'data-card="{reverse("unit-card", args=[RESNET, "layer4", 7])}"' in drawn


def test_a_system_that_is_hidden_from_its_reader_is_no_link(run: Run, first: User) -> None:
    queued(run, first)
    drawn = Template("{% load units %}{% unit_link run %}").render(
        Context({"run": run, "names": SystemNameMasker(first)})
    )
    assert "<a" not in drawn
    assert TOLD not in drawn
