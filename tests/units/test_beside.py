"""Two layers side by side: one filter, one scale of colours, the nearest on the other side."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone

from experiments.models import VisionModelRow
from tests.support.unit_pages import labelled, layer_of, measured

pytestmark = pytest.mark.django_db
BOTH = {"left": "hf:microsoft~2Fresnet-152/layer4", "right": "hf:microsoft~2Fresnet-152/layer1"}


def sides(client: Client, **query: str) -> list[str]:
    """The two lists of tiles."""
    text = client.get("/compare/layers/", BOTH | query).content.decode()
    return re.findall(r'<ul class="tiles".*?</ul>', text, flags=re.DOTALL)


def test_both_sides_are_filtered_and_coloured_alike(as_owner: Client, resnet: VisionModelRow) -> None:
    labelled(layer_of(resnet), 7, "a red ball")
    labelled(layer_of(resnet, "layer1"), 3, "red balls")
    left, right = sides(as_owner, q="red", colour="label")
    assert 'class="tile group-1"' in left
    assert 'class="tile group-1"' in right
    assert left.count('<li class="tile') == right.count('<li class="tile') == 1


def test_the_nearest_is_by_correlation_where_that_is_known_else_by_label(
    as_owner: Client, resnet: VisionModelRow
) -> None:
    other = layer_of(resnet, "layer1")
    labelled(other, 3, "red balls")
    labelled(layer_of(resnet), 8, "a red ball")
    near = {"measure": "correlation", "images": 9, "layers": 2, "same": [], "others": [[other.pk, 5, 0.83, 1]]}
    measured(labelled(layer_of(resnet), 7, "a red ball"), neighbours=near, compared=timezone.now())
    left, _ = sides(as_owner, q="red")
    assert "/layer1/5/" in left
    assert "0.83" in left
    assert "/layer1/3/" in left


def test_what_is_missing_is_asked_for(as_owner: Client, resnet: VisionModelRow) -> None:
    assert (
        "Choose two layers" in as_owner.get("/compare/layers/", {"left": BOTH["left"], "right": "no"}).content.decode()
    )
    assert len(sides(as_owner, page="9")) == 1  # the other has fewer units
