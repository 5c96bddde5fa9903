"""The form of an auto-encoder follows the model and the layer that are chosen, on a wide screen and on a phone."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from experiments.models import Dataset, Job, Layer, VisionModelRow
from tests.support.autoencoders import make_autoencoder
from tests.support.browser import aside, assert_fits, needs_chromium, open_page
from tests.support.people import signed_in

pytestmark = [pytest.mark.django_db(transaction=True), needs_chromium]


def fill() -> None:
    Dataset.objects.create(key="toybox", label="Toys", images=3000)
    Dataset.objects.create(key="folder:/birds", label="Birds", images=500)
    for name, units in (("toybox", 64), ("resnet", 2048)):
        model = VisionModelRow.objects.create(name=name, label=name)
        for position, layer in enumerate(("layer3", "layer4")):
            about = {"kind": "conv", "units": units // (2 - position), "path": layer, "position": position}
            Layer.objects.create(model=model, name=layer, **about)
    make_autoencoder("toys-256")


def test_the_form_follows_what_is_chosen_and_asks_for_it(live_server, redis_url: str, owner: User) -> None:
    fill()
    with open_page(live_server.url, signed_in(owner), base_url=live_server.url) as page:
        page.goto("/settings/autoencoders/")
        assert_fits(page, 1440, 390)
        form = page.locator("#train-form")
        latents, k = form.get_by_role("textbox", name="Latents"), form.get_by_label("Active at a position, k")
        expect(latents).to_have_value("256")
        form.get_by_label("Model").select_option("resnet")
        expect(latents).to_have_value("8192")
        expect(k).to_have_value("32")
        expect(form.get_by_label("Dataset")).to_have_value("folder:/birds")
        form.get_by_label("Dataset").select_option("toybox")
        form.get_by_label("Layer").select_option("layer3")
        expect(latents).to_have_value("4096")
        expect(form.get_by_label("Dataset")).to_have_value("toybox")
        form.get_by_label("Name").fill("mine")
        form.get_by_role("button", name="Start training").click()
        expect(page.locator("#work")).to_contain_text("Train an auto-encoder on resnet")
    (job,) = aside(lambda: list(Job.objects.all()))
    assert (job.subject, job.options["layer"], job.options["latents"], job.options["name"]) == (
        "resnet",
        "layer3",
        4096,
        "mine",
    )
