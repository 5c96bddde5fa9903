"""The card beside a link to a unit, and choosing units on a sheet and a map, in a real browser."""

from __future__ import annotations

import pytest
from django.test import Client
from playwright.sync_api import expect

from experiments.models import Label, Layer, Unit, VisionModelRow
from tests.support.browser import needs_chromium, open_page
from tests.support.served import served

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),  # WhiteNoise reads its files at once
    needs_chromium,
]


@pytest.fixture
def layer(db: None) -> Layer:
    del db
    model = VisionModelRow.objects.create(name="toybox", label="Toybox", available=True)
    row = Layer.objects.create(model=model, position=0, name="layer4", path="layer4", kind="conv", units=40)
    label = Label.objects.create(text="red balls", source="import")
    label.units.add(Unit.objects.create(layer=row, number=3))
    return row


def test_a_card_opens_by_pointer_and_by_keyboard_and_escape_closes_it(
    redis_url: str, as_owner: Client, layer: Layer
) -> None:
    errors: list[str] = []
    with served() as url, open_page(url, as_owner, errors) as page:
        page.goto(f"{url}/units/toybox/layer4/")
        card = page.locator("#unit-card")
        page.locator(".tile a").nth(3).hover()
        expect(card).to_contain_text("red balls")
        page.keyboard.press("Escape")
        expect(card).to_be_hidden()
        page.mouse.move(0, 0)
        page.locator(".tile input").nth(4).focus()
        page.keyboard.press("Tab")
        expect(card).to_contain_text("Unit 4")
        expect(page.locator(".tile a").nth(4)).to_have_attribute("aria-describedby", "unit-card")
        assert errors == []


def test_units_are_chosen_by_mouse_shift_and_keyboard_and_stay_chosen(
    redis_url: str, as_owner: Client, layer: Layer
) -> None:
    with served() as url, open_page(url, as_owner) as page:
        page.goto(f"{url}/units/toybox/layer4/")
        page.locator(".tile input").nth(2).check()
        count = page.locator("#chosen-count")
        expect(count).to_have_text("1")
        page.locator(".tile a").nth(8).click(modifiers=["Shift"])
        expect(count).to_have_text("7")
        page.goto(f"{url}/units/toybox/layer4/?view=map")
        expect(count).to_have_text("7")
        page.locator("#cells a").first.focus()
        page.keyboard.press("Space")
        expect(count).to_have_text("8")
        page.get_by_role("button", name="Choose all 40").click()
        expect(count).to_have_text("40")
        page.get_by_role("button", name="New sweep").click()
        expect(page.locator("textarea[name=units]")).to_have_value("\n".join(map(str, range(40))))
