"""The card of an image: escaped, complete, and with the addresses that the site has."""

from __future__ import annotations

import math
import re

import pytest
from django.template import Context, Template
from django.urls import reverse

from experiments.core.thumbnails import ImageUrls
from experiments.display.card_drawing import draw_bar, draw_card
from experiments.display.image_cards import ImageCard
from experiments.display.plots import Scale

IMAGE, MASKED = "a" * 64, "b" * 64
SCALE = Scale(-1.0, 10.0, 4.5)
MARKUP = '"><script>alert("{0} {title}")</script>&'


def card(activation: float = 3.25, seed: int | None = 7, title: str = "a tree", prompt: str = "tree") -> ImageCard:
    return ImageCard(title, activation, IMAGE, MASKED, "generated", prompt, seed)


def test_a_card_leads_to_the_page_of_its_image_and_shows_the_masked_one() -> None:
    drawn = draw_card(card(), SCALE)
    assert f'href="{reverse("image-page", args=[MASKED])}"' not in drawn
    assert f'<a class="frame" href="{reverse("image-page", args=[IMAGE])}"' in drawn
    small, fine = (reverse("thumbnail", args=[MASKED, size]) for size in (160, 320))
    assert f'<img class="masked" src="{small}" srcset="{small} 160w, {fine} 320w"' in drawn
    assert f'data-raw="{reverse("image", args=[IMAGE])}"' in drawn
    assert f'data-masked="{reverse("image", args=[MASKED])}"' in drawn
    assert f'<img class="raw" src="{reverse("thumbnail", args=[IMAGE, 160])}"' in drawn


def test_every_image_has_addresses_of_its_own() -> None:
    assert ImageUrls.of(IMAGE) != ImageUrls.of(MASKED)


def test_markup_and_braces_in_titles_and_prompts_are_text() -> None:
    drawn = draw_card(card(title=MARKUP, prompt=MARKUP), SCALE)
    assert "<script>" not in drawn
    assert drawn.count("&quot;&gt;&lt;script&gt;alert(&quot;{0} {title}&quot;)&lt;/script&gt;&amp;") == 5


@pytest.mark.parametrize(("seed", "expected"), [(7, ['data-seed="7"']), (0, ['data-seed="0"']), (None, [])])
def test_a_card_has_the_seed_of_what_was_generated(seed: int | None, expected: list[str]) -> None:
    assert re.findall(r'data-seed="\d+"', draw_card(card(seed=seed), SCALE)) == expected


def test_a_picture_without_a_title_says_so() -> None:
    drawn = draw_card(card(title=""), SCALE)
    assert 'alt="untitled image, masked, activation 3.25"' in drawn
    assert '<span class="title" title="">untitled</span>' in drawn


@pytest.mark.parametrize(
    ("activation", "start", "length"), [(3.25, "0", "3.25"), (-0.5, "-0.5", "0.5"), (0.0, "0", "0")]
)
def test_a_bar_reaches_from_nought_to_the_activation(activation: float, start: str, length: str) -> None:
    drawn = draw_bar(activation, SCALE)
    assert 'viewBox="-1 0 11 1"' in drawn
    assert f'<rect class="full" x="{start}" y="0" width="{length}" height="1"/>' in drawn
    assert '<line class="tick" x1="4.5" x2="4.5" y1="0" y2="1"/>' in drawn


@pytest.mark.parametrize("activation", [math.nan, math.inf])
def test_a_bar_of_what_is_no_number_is_empty(activation: float) -> None:
    assert "<rect" not in draw_bar(activation, SCALE)


def test_without_an_exemplar_mean_there_is_no_tick() -> None:
    assert "tick" not in draw_bar(1.0, Scale(0.0, 2.0, None))


def test_templates_draw_the_same_card() -> None:
    drawn = Template("{% load maia %}{% image_card each scale %}").render(Context({"each": card(), "scale": SCALE}))
    assert drawn == draw_card(card(), SCALE)
