"""What edits did to the activation, by property; activations by what images show."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from experiments.core import transcript
from experiments.models import Run
from experiments.runs.page.effects import read_effects
from tests.support.builders import experiment, make_run
from tests.support.long_run import long_run
from tests.support.pictures import logged, seen, stored
from workers.record.events import Ended
from workers.record.experiments import Observation
from workers.record.replies import Conclusion

pytestmark = pytest.mark.django_db
GROUNDS = (("snow", 0.1), ("grass", 0.9))


@pytest.fixture
def run(owner: User) -> Run:
    return long_run(owner, 6, 4)


def test_every_edit_has_a_dot_and_each_original_stands_once(run: Run) -> None:
    found = read_effects(run, {})
    assert found["plot"]
    assert len(found["plot"].dots) == found["edits"] > 0
    originals = [before.image for before, _ in found["groups"]]
    assert len(originals) == len(set(originals))
    assert sum(len(afters) for _, afters in found["groups"]) == found["edits"]


def test_the_tab_asks_the_database_as_often_whatever_the_run_holds(as_owner: Client, owner: User, run: Run) -> None:
    larger = long_run(owner, 20, 6)
    as_owner.get(f"/runs/{run.pk}/?tab=effects")
    with CaptureQueriesContext(connection) as few:
        as_owner.get(f"/runs/{run.pk}/?tab=effects")
    with CaptureQueriesContext(connection) as many:
        as_owner.get(f"/runs/{larger.pk}/?tab=effects")
    assert len(many) == len(few)


def test_a_bias_that_is_stated_is_drawn_by_the_images_that_its_test_takes(owner: User) -> None:
    run = make_run(owner, system_kind="logit", task="bias")
    shown = [seen(f"a car on {ground} {n}", value, "red", measured=True) for ground, value in GROUNDS for n in range(8)]
    edit = Observation("a car on snow", 0.0, stored("blue"), None, "edited", measured=True)
    transcript.append(run.pk, "experiment", experiment())
    transcript.append(run.pk, "result", logged(*shown, edit))
    said = 'I found one.\n- Weaker for "car" with "snow": 0.1.\n- Stronger with "moon": no image has it.'
    transcript.append(run.pk, "concluded", Ended("", Conclusion(bias=said)))
    plot = read_effects(Run.objects.get(pk=run.pk), {})["stated"]
    assert plot.table
    assert [(row[0], row[-1]) for row in plot.table.rows] == [("with “snow” (car)", 8), ("without “snow” (car)", 8)]
    assert "with “snow” (car), n = 8" in " ".join(text.words for text in plot.texts).replace("  ", " ")
    assert [row[1] for row in plot.table.rows] == pytest.approx([0.1, 0.9])
