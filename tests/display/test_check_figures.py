"""The label check on a card: figures with intervals, too few positives, not readable; hidden from blind judges."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import transcript
from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.display.answers import render_answer
from experiments.display.label_checks import MIN_POSITIVES, read_figures
from experiments.models import LabelCheck, Layer, ReviewQueue, Run, Unit, VisionModelRow
from experiments.reviews import actions
from tests.support.builders import make_run, started
from tests.support.people import member
from workers.record.decoding import encode
from workers.record.events import Ended
from workers.record.label_checks import CheckResult, NaturalResult, Reference
from workers.record.replies import Conclusion

pytestmark = pytest.mark.django_db
MEASURED = {"pearson": 0.9, "pearson_low": 0.8, "pearson_high": 0.95, "auprc": 0.7, "base_rate": 0.1}
HIDDEN = "shown once you have submitted"


def make_check(positives: int = MIN_POSITIVES, of: int = 200, **fields: Any) -> LabelCheck:
    """A check that found so many images to show the label, below a ceiling of 0.76."""
    layer = Layer.objects.create(model=VisionModelRow.objects.create(name="net"), name="layer4", position=0, units=1)
    expected = (1.0,) * positives + (0.0,) * (of - positives)
    natural = NaturalResult("toybox", images=of, expected=expected, ceiling=Reference("the truth", 0.76, 0.7))
    given = MEASURED | {"status": "done", "result": encode(CheckResult(natural))} | fields
    unit = Unit.objects.create(layer=layer, number=0)
    return LabelCheck.objects.create(key="k", unit=unit, text="balls", dataset="toybox", options={}, **given)


def conclude(owner: User, check: LabelCheck) -> Run:
    run = make_run(owner, label_check=check)
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "concluded", Ended("", Conclusion("It responds to balls.", ("balls",))))
    return Run.objects.get(pk=run.pk)


def test_figures_stand_with_their_interval_and_ceiling(owner: User) -> None:
    found = read_figures(make_check())
    assert found.why == ""
    assert found.ceiling == 0.76
    assert found.plot is not None
    assert [line.kind for line in found.plot.lines].count("ceiling") == 2
    assert "0.80 to 0.95" in found.plot.label


def test_the_ceiling_waits_for_the_end_of_the_run() -> None:
    found = read_figures(make_check(), ceiling=False)
    assert found.ceiling is None
    assert found.plot is not None
    assert "ceiling" not in [line.kind for line in found.plot.lines]


def test_too_few_positives_give_no_figure(owner: User) -> None:
    check = make_check(positives=MIN_POSITIVES - 1)
    assert read_figures(check).plot is None
    assert f"Too few positives: {MIN_POSITIVES - 1} of 200" in render_answer(
        conclude(owner, check), SystemNameMasker(owner)
    )


def test_a_label_that_cannot_be_read_says_why(owner: User) -> None:
    check = make_check(status="untestable", reason="“meaning” is nothing that can be seen.", result={}, pearson=None)
    assert "Not readable: “meaning” is nothing that can be seen." in render_answer(
        conclude(owner, check), SystemNameMasker(owner)
    )


def test_a_blind_reviewer_sees_the_check_after_submitting(owner: User, client: Client) -> None:
    run = conclude(owner, make_check())
    actions.make_queue(Actor(owner), Run.objects.all(), ReviewQueue(name="Blind", reviewers_per_item=2))
    item = ReviewQueue.objects.get().items.get()
    reviewer = member("first", "REVIEWER")
    client.force_login(reviewer)
    client.get(f"/review/{item.queue_id}/next/")
    before = client.get(item.get_absolute_url()).content.decode()
    assert HIDDEN in before
    assert "r 0.90 (95" not in before
    fields = dict.fromkeys(("supported", "specific", "complete", "confounds", "samples"), "4") | {"verdict": "accept"}
    client.post(f"{item.get_absolute_url()}submit/", fields | {"version": 1, "seq": run.last_seq})
    after = client.get(item.get_absolute_url()).content.decode()
    assert HIDDEN not in after
    assert "r 0.90 (95" in after
