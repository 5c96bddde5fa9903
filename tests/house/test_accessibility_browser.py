"""axe-core over every page there is, full and empty, at the sizes of a screen, a tablet and a phone.

The pages come from the table of addresses: a new one is looked at without being named here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page

from experiments.models import Share
from experiments.runs.page.pages import TABS
from tests.support.accessibility import violations
from tests.support.address_rows import queue_of
from tests.support.addresses import ADMIN_READ, KEY, READ, RESEARCH, REVIEW_READ
from tests.support.api_world import KEY as FULL_KEY
from tests.support.api_world import fill
from tests.support.browser import needs_chromium, open_page, overhang
from tests.support.long_run import long_run
from tests.support.own_rows import by_hand
from tests.support.people import member
from tests.support.pictures import stored
from tests.support.shared_run import discuss

pytestmark = [pytest.mark.django_db(transaction=True), needs_chromium, pytest.mark.timeout(900)]
ADDRESSES = READ | RESEARCH | REVIEW_READ | ADMIN_READ
BESIDE = (
    "/nowhere/",
    "/api/v1/docs",
    "/api/v1/docs/notebook",
    "/experiments/?view=list",
    "/search/?q=red",
    "/compare/?run={run}&run={other}",
    "/runs/{hand}/reply/",
)
"""What is no address of its own."""
DESKTOP, TABLET, PHONE, ZOOMED = (1440, 900), (1024, 768), (390, 844), (720, 450)
"""The last is a window of 1440 by 900 at 200 %."""
MOVES = """() => [...document.querySelectorAll("*")].filter((each) => {
  const { transitionDuration, animationDuration, animationName } = getComputedStyle(each);
  const moves = (time) => time.split(",").some((part) => parseFloat(part) > 0.02);
  return moves(transitionDuration) || (animationName !== "none" && moves(animationDuration));
}).map((each) => each.outerHTML.slice(0, 100))"""


@pytest.fixture
def admin(client: Client, settings: Any, tmp_path: Any) -> User:
    """Somebody who may open everything."""
    settings.MEDIA_ROOT = tmp_path
    chief = member("chief", "ADMIN")
    client.force_login(chief)
    return chief


def full(ids: dict[str, int], admin: User) -> dict[str, Any]:
    """What stands in the addresses of a team that has done things: a run of six rounds with comments, in a review."""
    world, one, other = fill(admin), long_run(admin, 6), long_run(admin, 6)
    discuss(one)
    share = Share.issue(one, admin, timezone.now() + timedelta(days=1), names=True, comments=True)
    places = {name: getattr(world, name).pk for name in ("evaluation", "check", "label", "job", "thread")}
    return (
        ids
        | places
        | {"run": one.pk, "other": other.pk, "queue": queue_of(one).pk, "token": share[1], "hand": by_hand(admin).pk}
    )


def pages(client: Client, ids: dict[str, Any], key: str, place: str) -> list[str]:
    """The addresses that answer with a page, rather than with a part of one or a file."""
    known = [*ADDRESSES.values(), *(f"/runs/{{run}}/?tab={tab}" for tab in TABS), *BESIDE, "/shared/{token}/"]
    numbers = {"other": 1, "hand": 1, "token": "x" * 43} | ids
    paths = dict.fromkeys(path.replace(KEY, key).replace("own/fc/1", place).format(**numbers) for path in known)
    return [path for path in paths if _is_page(client, path)]


def _is_page(client: Client, path: str) -> bool:
    answer = client.get(path)
    is_text = answer.get("Content-Type", "").startswith("text/html")
    return answer.status_code in {200, 404} and is_text and b"<main" in answer.content


@pytest.fixture
def everywhere(client: Client, ids: dict[str, int], admin: User, redis_url: str) -> list[str]:
    """The pages of an installation that is full, and those that look otherwise where next to nothing is there."""
    stored("red")
    bare = pages(client, ids, KEY, "own/fc/1")
    found = pages(client, full(ids, admin), FULL_KEY, "toybox/layer4/1")
    assert len(found) > 50, found
    return [*found, *(path for path in bare if path not in found)]


def looked_at(page: Page, paths: list[str]) -> list[str]:
    """All that is wrong, page by page."""
    wrong = []
    for path in paths:
        page.goto(path)
        wrong += [f"{path}: {each}" for each in violations(page)]
        if (wide := overhang(page)) > 0:
            wrong.append(f"{path}: {wide} pixels wider than the window")
    return wrong


def look(url: str, client: Client, paths: list[str], size: tuple[int, int], **options: Any) -> list[str]:
    window = {"width": size[0], "height": size[1]}
    with open_page(url, client, viewport=window, base_url=url, bypass_csp=True, **options) as page:
        return looked_at(page, paths)


@pytest.mark.more
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (TABLET, "light"), (PHONE, "dark")])
def test_every_page_can_be_used_by_everybody(
    live_server, client: Client, everywhere: list[str], size: tuple[int, int], scheme: str
) -> None:
    assert not (wrong := look(live_server.url, client, everywhere, size, color_scheme=scheme)), "\n".join(wrong)


def test_nothing_is_lost_at_twice_the_size_and_nothing_moves_for_who_wants_it_still(
    live_server, client: Client, admin: User, ids: dict[str, int], redis_url: str
) -> None:
    stored("red")
    places = full(ids, admin)
    paths = [
        "/",
        "/query/",
        "/runs/",
        f"/runs/{places['run']}/",
        "/experiments/",
        "/units/toybox/layer4/1/",
        "/review/",
    ]
    window = {"width": ZOOMED[0], "height": ZOOMED[1]}
    with open_page(live_server.url, client, viewport=window, base_url=live_server.url, reduced_motion="reduce") as page:
        for path in paths:
            page.goto(path)
            assert (path, overhang(page), page.evaluate(MOVES)) == (path, 0, [])
