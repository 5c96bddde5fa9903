"""The strip beside a hypothesis: which images it holds, as of which round, and what it says of them."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User

from experiments.core import transcript
from experiments.core.system_names import SystemNameMasker
from experiments.display import events as rendering
from experiments.display import hypothesis_strips
from experiments.display.hypothesis_strips import ListedHypothesis
from experiments.display.plots import Scale
from experiments.models import Run
from tests.support.builders import experiment, make_run, replied
from tests.support.pictures import logged, seen
from workers.record.events import Audience
from workers.record.replies import Hypothesis

pytestmark = pytest.mark.django_db

SCALE = Scale.of([0.0, 10.0], None)


@pytest.fixture
def run(owner: User) -> Run:
    """Two rounds that list the same hypotheses; images come between them."""
    run = make_run(owner)
    listed = (Hypothesis(1, "red <balls>", "open", ""), Hypothesis(2, "kites", "open", ""))
    transcript.append(run.pk, "reply", replied(1, hypotheses=listed))
    transcript.append(run.pk, "experiment", experiment())
    images = (
        ("red balls", 9.0, "red"),
        ("big red balls", 4.0, "orange"),
        ("a cube", 0.0, "green"),
        ("a cone", 5.0, "orchid"),
    )
    transcript.append(run.pk, "result", logged(*(seen(*each) for each in images)))
    transcript.append(run.pk, "reply", replied(2, hypotheses=listed))
    return Run.objects.get(pk=run.pk)


def test_a_strip_counts_both_sides_of_what_was_logged_before_its_round(run: Run) -> None:
    then, now, none = (ListedHypothesis(*each) for each in ((1, "red balls"), (2, "red balls"), (2, "kites")))
    drawn = hypothesis_strips.draw_strips(run, {then, now, none}, SCALE)
    assert set(drawn) == {now}, "before, nothing was logged; and no image shows a kite"
    assert "AUC 0.75" in drawn[now]
    assert "n 2 | 2" in drawn[now]
    assert re.findall(r'class="(\w+)" d="([^"]+)"', drawn[now]) == [
        ("with", "M40 1v5M90 1v5"),
        ("without", "M0 8v5M50 8v5"),
    ]


def test_strips_stand_in_the_transcript_and_in_the_side_column(run: Run) -> None:
    drawn = {event.seq: html for event, html in rendering.render_events(run, run.events.order_by("seq"))}
    assert [seq for seq, html in drawn.items() if "sides-strip" in html] == [run.last_seq]
    assert "red &lt;balls&gt;" in drawn[run.last_seq]
    side = rendering.side(run)
    assert side.count("sides-strip") == 1
    assert '"?tab=hypotheses"' in side


def test_whoever_has_a_link_sees_the_strip_and_no_way_into_the_site(run: Run) -> None:
    ((_, html),) = rendering.render_events(run, [run.events.last()], SystemNameMasker(None), Audience.LINK)
    assert "AUC 0.75" in html
    assert "href" not in html
