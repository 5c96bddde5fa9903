"""Figures that a conclusion cites, counted again: little is recognised, and nothing that is right is marked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.auth.models import User

from experiments.core import transcript
from experiments.display import events
from experiments.display.cited_figures import Cited, recount
from experiments.exchange import run_html
from experiments.models import Run
from experiments.runs.api import read_out
from tests.support.builders import experiment, make_run, replied, started
from tests.support.pictures import logged, seen
from workers.record.events import Ended
from workers.record.replies import Conclusion

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(owner: User) -> Run:
    run = make_run(owner)
    images = [seen(f"a red ball on grass {n}", value, colour) for n, (value, colour) in enumerate(BALLS, 1)]
    told = [("started", started()), ("reply", replied()), ("experiment", experiment())]
    told.append(("result", replace(logged(*images, seen("a cone", 1.0, "gray")), best=9.41, measured=6)))
    for kind, payload in told:
        transcript.append(run.pk, kind, payload)
    run.refresh_from_db()
    return run


BALLS = [(8.0, "red"), (9.0, "blue"), (10.0, "green")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Stars drive it, 44 images.", [Cited("n=44", "6 images measured in all", False)]),
        ("Balls reach 12.98 on average.", [Cited("mean 12.98", "nothing measured above 10.00", False)]),
        (
            "A red ball on grass: mean 9.00, n=3; cubes are weak.",
            [
                Cited("n=3", "n=3 under “a red ball on grass”", True),
                Cited("mean 9.00", "mean 9.00 under “a red ball on grass”", True),
            ],
        ),
        (
            "A red ball on grass (mean 9.50, n = 4) drives it.",
            [
                Cited("n=4", "n=3 under “a red ball on grass”", False),
                Cited("mean 9.50", "mean 9.00 under “a red ball on grass”", False),
            ],
        ),
        ("Five images of balls, n=5, mean 4.20, and some 3.1 on average.", []),
        ("It responds to 2 images in a cone.", []),
        ("", []),
    ],
)
def test_only_what_is_sure_is_recognised(run: Run, text: str, expected: list[Cited]) -> None:
    assert recount(run, {"description": text}) == expected


def test_the_conclusion_shows_what_the_record_has(run: Run) -> None:
    end = Ended(conclusion=Conclusion("A red ball on grass, n=157.", ("red balls",)))
    event = transcript.append(run.pk, "concluded", end)
    drawn = events.render_event(event, Run.objects.get(pk=run.pk))
    assert '<span class="claim mismatch">n=157</span>' in drawn
    assert "the record has 6 images measured in all" in drawn
    page = "".join(run_html.document(run, [event], lambda key: ""))
    assert "the record has 6 images measured in all" in page
    cited = read_out(run.pk, run.owner).recounted[0]
    assert (cited.cited, cited.record, cited.agrees) == ("n=157", "6 images measured in all", False)
