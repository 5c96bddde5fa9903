"""An open Workers page keeps its queue true."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from experiments.core import queue
from experiments.models import Run
from tests.support.browser import aside, needs_chromium, open_page
from tests.support.builders import make_run
from tests.support.people import member, signed_in

pytestmark = [pytest.mark.django_db(transaction=True), needs_chromium]


def test_the_queue_fills_and_empties_while_one_looks(live_server, redis_url: str, owner: User) -> None:
    viewer = signed_in(member("onlooker", "VIEWER"))

    def ask() -> None:
        queue.enqueue(make_run(owner, model="alexnet").pk)

    def end() -> None:
        Run.objects.update(status="concluded")

    with open_page(live_server.url, viewer, base_url=live_server.url) as page:
        page.goto("/settings/workers/")
        shown = page.locator(".queue")
        expect(shown).to_contain_text("The queue is empty")
        aside(ask)
        expect(shown).to_contain_text("1 run waits")
        expect(shown.get_by_role("row", name="owner")).to_contain_text("alexnet")
        aside(end)
        expect(shown).to_contain_text("The queue is empty")
