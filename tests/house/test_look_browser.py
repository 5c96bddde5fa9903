"""How pages look, where a style of one page may spoil another: sizes, places and marks measured in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from experiments.core import transcript
from experiments.models import Backbone, Dataset, Layer, Run, VisionModelRow
from tests.support.browser import needs_chromium, open_page
from tests.support.builders import make_run, started
from tests.support.people import member, signed_in
from tests.support.trials import labelled, trial

pytestmark = [
    pytest.mark.django_db(transaction=True),
    needs_chromium,
]


@pytest.fixture
def run(redis_url: str, owner: User) -> Run:
    """A run, a model with a price and one without, a dataset."""
    model = VisionModelRow.objects.create(name="toybox")
    Layer.objects.create(model=model, name="layer4", path="layer4", kind="conv", units=96, position=1)
    Dataset.objects.create(key="toybox", label="Toybox")
    for key in ("scripted", "person"):
        Backbone.objects.create(key=key, label=key)
    Backbone.objects.create(key="openai", label="Model", model_names=["dear", "free"], prices={"dear": [1.0, 2.0]})
    run = make_run(owner, question="What does unit 7 respond to, and how do we know?")
    transcript.append(run.pk, "started", started())
    return run


@pytest.fixture
def judging(owner: User, run: Run) -> str:
    """The address of a trial."""
    labelled(owner)
    return trial(owner).get_absolute_url()


@pytest.fixture
def onlooker(run: Run) -> dict[str, str]:
    """The session of somebody who may only read."""
    session = signed_in(member("onlooker", "VIEWER")).cookies[settings.SESSION_COOKIE_NAME].value
    return {"name": settings.SESSION_COOKIE_NAME, "value": session}


@pytest.fixture
def page(live_server, redis_url: str, judging: str) -> Iterator[Page]:
    admin, size = signed_in(member("chief", "ADMIN")), {"width": 1440, "height": 900}
    with open_page(live_server.url, admin, viewport=size, base_url=live_server.url) as page:
        yield page


def test_pages_look_as_they_should(onlooker: dict[str, str], page: Page, run: Run, judging: str) -> None:
    one_backbone_looks_chosen(page)
    boxes_to_tick_are_small(page, judging)
    the_rail_stands_still(page, run)
    questions_have_room(page)
    what_can_be_done_here_comes_before_the_pages(page, run)
    links_to_events_stand_at_the_right(page, run, onlooker)


def one_backbone_looks_chosen(page: Page) -> None:
    page.goto("/query/")
    framed = "all => all.filter(each => getComputedStyle(each).boxShadow !== 'none').length"
    backbones, leave = page.locator(".backbone .chosen"), page.get_by_label("Run without a known price")
    page.get_by_role("radio", name="scripted").check()
    assert backbones.evaluate_all(framed) == 1
    expect(page.locator(".model-choice")).to_be_hidden()
    expect(leave).to_be_hidden()
    page.locator("[name=backbone][value=openai]").check()
    assert backbones.evaluate_all(framed) == 1
    expect(leave).to_be_hidden()
    page.locator("[name=backbone_model]").select_option("free")
    expect(leave).to_be_visible()


def boxes_to_tick_are_small(page: Page, judging: str) -> None:
    for address in ("/settings/datasets/", judging, "/runs/", "/review/new/", "/experiments/?differs=on"):
        page.goto(address)
        tall = "all => all.map(each => Math.max(each.offsetWidth, each.offsetHeight))"
        sizes = page.locator("input[type=checkbox]").evaluate_all(tall)
        assert sizes, address
        assert max(sizes) <= 20, address


def the_rail_stands_still(page: Page, run: Run) -> None:
    places = set()
    for address in ("/", f"/runs/{run.pk}/", "/query/", "/experiments/", "/units/"):
        page.goto(address)
        box = page.locator("#more .nav-list").bounding_box()
        foot = page.locator("#more .foot").bounding_box()
        assert box, foot
        places.add((box["x"], box["y"], foot and foot["x"]))
    assert len(places) == 1, places


def links_to_events_stand_at_the_right(page: Page, run: Run, viewer: dict[str, str]) -> None:
    page.context.add_cookies(
        [{"name": viewer["name"], "value": viewer["value"], "url": page.url.partition("/runs")[0]}]
    )
    page.goto(f"/runs/{run.pk}/")
    head, link = page.locator("#question").bounding_box(), page.locator("#question .permalink").bounding_box()
    assert head
    assert link
    assert head["x"] + head["width"] - link["x"] - link["width"] < 2


def questions_have_room(page: Page) -> None:
    page.goto("/runs/")
    box = page.locator("td.main").first.bounding_box()
    assert box
    assert box["width"] >= 260


def what_can_be_done_here_comes_before_the_pages(page: Page, run: Run) -> None:
    page.goto(f"/runs/{run.pk}/")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-here")).to_contain_text("Fork this run")
    here, pages = (page.locator(f"#palette-{name}").bounding_box() for name in ("here", "pages"))
    assert here
    assert pages
    assert here["y"] < pages["y"]
    expect(page.locator("#palette-actions")).not_to_contain_text("Fork this run")
