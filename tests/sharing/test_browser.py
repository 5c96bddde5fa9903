"""A shared run in a real browser: the answer stands first, and cards hold whatever their figures are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser import needs_chromium, open_page, overhang
from tests.support.figure_boxes import BOXES
from tests.support.shared_run import eventful_run, keep, link
from workers.record.events import Ended
from workers.record.replies import Conclusion

pytestmark = [
    pytest.mark.django_db(transaction=True),
    needs_chromium,
]


@pytest.mark.parametrize("width", [1440, 390])
def test_activations_above_twenty_stay_inside_their_cards(live_server: Any, width: int) -> None:
    run = eventful_run()
    event = run.events.get(kind="result")
    (entry,) = event.payload["entries"]
    entry["observations"] = [each | {"activation": 23.13} for each in entry["observations"]]
    event.save()
    run.observations.update(activation=23.13)
    keep(run, ("concluded", Ended("", Conclusion("It responds to red balls.", ("red balls",)))))
    address = f"{live_server.url}{link(run).path}"
    with open_page(viewport={"width": width, "height": 900}) as page:
        page.goto(address, wait_until="load")
        cards = page.evaluate(BOXES.replace('("figure")', '("figure:has(.activation)")'))
        answer = page.locator(".answer").bounding_box()
        assert overhang(page) == 0
    assert answer is not None
    assert answer["y"] < 450, "the answer stands first"
    assert {each["words"] for each in cards} == {"23.13"}
    assert [each for each in cards if each["beyond"] or each["lines"] > 1.5] == []
