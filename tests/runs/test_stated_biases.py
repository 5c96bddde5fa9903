"""Biases that a run states: tested when it ends, kept with the run, shown by its pages and the API."""

from __future__ import annotations

import re
import threading
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.display.contrasts import list_stated
from experiments.models import Run
from experiments.runs.page.effects import read_effects
from tests.support.builders import experiment, make_run, replied
from tests.support.pictures import logged, seen
from workers.jobs.console import format_event
from workers.jobs.images import ImagesInDatabase
from workers.jobs.run_log import DatabaseRunLog
from workers.record.events import Ended
from workers.record.replies import Conclusion

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]
NIGHT = 'Weaker for cars at night (titles with "car" and "night").'
SNOW = 'Stronger for cars on snow (titles with "car" and "snow").'
STATED = Conclusion(bias=f"{NIGHT}\n{SNOW}")


@pytest.fixture
def run(owner: User) -> Run:
    """It drew few cars, stated two biases, drew sixteen more, and concluded."""
    run = make_run(owner, task="bias", system_kind="logit")
    log = DatabaseRunLog(run, ImagesInDatabase(), threading.Event())
    first = [seen(f"car {light}", value, "red", measured=True) for light, value in (("at night", 0.1), ("by day", 0.9))]
    new = [
        seen(f"car {light}, view {n}", value + n / 100, "blue", measured=True)
        for n in range(8)
        for light, value in (("at night", 0.2), ("by day", 0.7))
    ]
    log.append("experiment", experiment(1))
    log.append("result", logged(*first, number=1))
    log.append("reply", replied(2, conclusion=STATED))
    log.append("experiment", experiment(2))
    log.append("result", logged(*new, number=2))
    log.append("concluded", Ended(conclusion=STATED))
    run.refresh_from_db()
    return run


def test_the_end_has_what_the_new_images_say(run: Run, owner: User, client: Client) -> None:
    found = {each["context"]: each for each in run.biases}
    night, snow = found["night"], found["snow"]
    assert (night["holds"], night["fresh"], night["after"]) == (True, True, 1)
    assert (night["inside"], night["outside"]) == (8, 8)
    assert night["inside_mean"] == pytest.approx(0.235)
    assert not snow["holds"]
    assert 'with "snow"' in snow["why"]
    client.force_login(owner)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    words = " ".join(unescape(re.sub("<[^>]*>", " ", page)).split())
    assert words.count("All were drawn after it was stated.") == 2, "the answer and the end"
    assert words.count("The run drew fewer than two prompts") == 2
    told = client.get(f"/api/v1/runs/{run.pk}").json()["biases"]
    assert [(each["context"], each["holds"]) for each in told] == [("night", True), ("snow", False)]
    assert told[0]["effect"] == night["effect"] < told[0]["high"] < 0


def test_pages_draw_the_images_that_were_tested(run: Run) -> None:
    assert [each.after for each in list_stated(run)] == [1, 1]
    plot = read_effects(run, {})["stated"]
    assert [row[-1] for row in plot.table.rows] == [8, 8], "without the two that suggested it"


def test_a_terminal_says_what_came_of_the_tests(run: Run) -> None:
    end = run.events.get(kind="concluded").content
    told = format_event(end, "concluded")
    assert "Holds on new images: “night”, effect -" in told
    assert "Not tested: “snow”. The run drew fewer than two prompts" in told
