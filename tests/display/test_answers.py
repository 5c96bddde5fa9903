"""The answer of a run on its card: what speaks for it and against it, and the truth for those who may read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from experiments.core import transcript
from experiments.core.system_names import SystemNameMasker
from experiments.display.answers import MAX_IMAGES, read_answer, render_answer
from experiments.models import Image, Layer, Run, Unit, VisionModelRow
from tests.support.builders import make_run, replied, started
from tests.support.pictures import logged, seen
from workers.record.events import Audience, Ended, ExperimentStarted, Hypothesis
from workers.record.replies import Conclusion
from workers.toybox.world.scenes import LIGHTS, Scene, Thing

pytestmark = pytest.mark.django_db
COLOURS = ("red", "blue", "green", "gray", "orange", "violet", "magenta")

FOR = ("salmon", "turquoise", "seagreen", "goldenrod", "orchid", "khaki", "slateblue")
SYNTHETIC = {"system_kind": "synthetic", "model": "synthetic:or", "layer": "or", "unit": 0}


def shown(title: str, activations: Sequence[float], colours: Sequence[str]) -> list[Any]:
    return [
        seen(f"{title} {place}", activation, colour)
        for place, (activation, colour) in enumerate(zip(activations, colours, strict=True), 1)
    ]


def play(run: Run, *, concluded: bool = True) -> Run:
    """One round whose images of balls lie high but one, and those of others low but one."""
    balls = shown("red ball", (31.0, 30.0, 29.0, 28.0, 27.0, 26.0, 4.0), FOR)
    cubes = shown("blue cube", (22.0, 3.0, 2.0, 1.5, 1.0, 0.5, 0.1), COLOURS)
    listed = (
        Hypothesis(1, "anything round", "refuted", "4.1"),
        Hypothesis(2, "cubes", "open"),
        Hypothesis(3, "red balls", "supported", "6 of 7"),
    )
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "reply", replied(hypotheses=listed, code='"""Colour or shape?"""'))
    transcript.append(run.pk, "experiment", ExperimentStarted(1, 1, "pass"))
    transcript.append(run.pk, "result", logged(*balls, *cubes))
    if concluded:
        said = "It responds to **red balls**, whatever their size and wherever they stand. More words follow."
        transcript.append(run.pk, "concluded", Ended("", Conclusion(said, ("red balls",))))
    run.refresh_from_db()
    return run


def test_it_holds_the_labels_one_sentence_and_what_speaks_for_and_against(owner: User) -> None:
    answer = read_answer(play(make_run(owner, exemplar_mean=30.0)), SystemNameMasker(owner))
    assert answer.labels == ["red balls"]
    assert answer.sentence == "It responds to red balls, whatever their size and wherever they stand."
    assert [each.card.title for each in answer.best] == [f"red ball {place}" for place in range(1, MAX_IMAGES + 1)]
    assert answer.against[0].card.title == "red ball 7", "the one that contradicts the label"
    assert answer.auc is not None
    assert 0.9 < answer.auc < 1
    assert answer.contrast is not None
    assert len(answer.contrast.dots) == 14
    assert answer.leading == answer.rounds == ()


def test_a_run_under_way_says_what_leads_and_keeps_room_for_the_rest(owner: User) -> None:
    run = make_run(owner, exemplar_mean=30.0, status="running")
    empty = render_answer(run, SystemNameMasker(owner))
    assert "No hypothesis yet" in empty
    assert empty.count("pending-image") == 2 * MAX_IMAGES
    play(run, concluded=False)
    answer = read_answer(run, SystemNameMasker(owner))
    assert [each.text for each in answer.leading] == ["red balls", "cubes"], "no refuted one"
    assert [line.words for line in answer.rounds] == ["Colour or shape?"]
    drawn = render_answer(run, SystemNameMasker(owner))
    assert "Answer so far" in drawn
    assert "pending-image" not in drawn
    assert "What next" not in drawn, "there is nothing to review yet"


def test_the_truth_about_a_synthetic_neuron_waits_for_the_end(owner: User) -> None:
    model = VisionModelRow.objects.create(name="synthetic:or")
    Layer.objects.create(model=model, name="or", position=0, units=1, names=["ball | boat"])
    run = play(make_run(owner, status="running", **SYNTHETIC), concluded=False)
    assert "ball | boat" not in render_answer(run, SystemNameMasker(owner))
    transcript.append(run.pk, "concluded", Ended("", Conclusion("Balls.", ("balls",))))
    run.refresh_from_db()
    assert "ball | boat" in render_answer(run, SystemNameMasker(owner))


def test_outsiders_get_the_answer_and_no_way_into_the_site(owner: User) -> None:
    run = play(make_run(owner))
    drawn = render_answer(run, SystemNameMasker(None), Audience.LINK, NoPictures())
    assert "red balls" in drawn
    assert "href=" not in drawn
    assert "What next" not in drawn


def test_what_went_wrong_on_our_side_is_told_to_the_team_alone(owner: User) -> None:
    run = make_run(owner, status="failed", reason="/srv/secrets is full")
    assert "/srv/secrets" in render_answer(run, SystemNameMasker(owner))
    assert "/srv/secrets" not in render_answer(run, SystemNameMasker(None), Audience.LINK, NoPictures())


def test_words_of_the_agent_stay_words(owner: User) -> None:
    run = make_run(owner)
    hostile = "<script>alert(1)</script>"
    transcript.append(run.pk, "concluded", Ended("", Conclusion(hostile, (hostile,))))
    run.refresh_from_db()
    assert "<script" not in render_answer(run, SystemNameMasker(owner))


def test_it_takes_as_many_queries_however_much_was_logged(owner: User) -> None:
    def count(run: Run) -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            render_answer(run, SystemNameMasker(owner))
        return len(asked)

    assert count(play(make_run(owner))) == count(twice(make_run(owner)))


def twice(run: Run) -> Run:
    play(run, concluded=False)
    more = shown("red ball", (9.0, 8.0), ("cyan", "slategray"))
    transcript.append(run.pk, "experiment", ExperimentStarted(2, 2, "pass"))
    transcript.append(run.pk, "result", logged(*more, number=2))
    transcript.append(
        run.pk, "concluded", Ended("", Conclusion("It responds to red balls, I am sure of it.", ("red balls",)))
    )
    run.refresh_from_db()
    return run


def test_its_actions_lead_where_they_say(owner: User, client: Client) -> None:
    client.force_login(owner)
    run = play(make_run(owner))
    page = client.get(run.get_absolute_url()).content.decode()
    for way in (f"/compare/?run={run.pk}", f"/runs/{run.pk}/fork/", f"/query/?from={run.pk}", "#question"):
        assert f'href="{way}"' in page
        assert way.startswith("#") or client.get(way).status_code == 200


class NoPictures:
    """Where no image is sent along."""

    def small(self, key: str) -> str:
        return ""

    def whole(self, key: str) -> str:
        return ""


def test_a_bias_is_decided_by_the_images_that_its_test_takes(owner: User) -> None:
    run = make_run(owner, task="bias", system_kind="logit")
    night = [seen(f"car at night {n}", 0.1, colour, measured=True) for n, colour in enumerate(FOR)]
    day = [seen(f"car by day {n}", 0.8, colour, measured=True) for n, colour in enumerate(COLOURS)]
    transcript.append(run.pk, "experiment", ExperimentStarted(1, 1, "pass"))
    transcript.append(run.pk, "result", logged(*night, *day))
    transcript.append(run.pk, "concluded", Ended("", Conclusion(bias='One:\n- Weaker for "car" with "night".')))
    answer = read_answer(Run.objects.get(pk=run.pk), SystemNameMasker(owner))
    assert answer.auc == 0.0
    assert answer.contrast
    assert [text.words for text in answer.contrast.texts if text.kind == "name"] == ["With “night”", "Without “night”"]
    assert answer.sentence == 'One: Weaker for "car" with "night".'


def test_a_verdict_is_no_label_of_the_unit_and_is_not_checked(owner: User, client: Client) -> None:
    Layer.objects.create(model=VisionModelRow.objects.create(name="net"), name="layer4", position=0, units=8)
    run = make_run(owner, task="spurious", model="net", layer="layer4", unit=3)
    transcript.append(run.pk, "started", started())
    said = Conclusion(reasoning="Cars alone reach 0.9. More words.", labels=("SELECTIVE",))
    transcript.append(run.pk, "concluded", Ended("", said))
    drawn = render_answer(Run.objects.get(pk=run.pk), SystemNameMasker(owner))
    assert "SELECTIVE" in drawn
    assert "Cars alone reach 0.9." in drawn
    assert "Check this label" not in drawn
    client.force_login(owner)
    unit = client.get("/units/net/layer4/3/").content.decode()
    assert '<span class="label">SELECTIVE' not in unit.replace("\n", "")
    assert not Unit.objects.filter(labels__text="SELECTIVE").exists()


def test_without_a_label_the_two_conditions_that_lie_furthest_apart_are_drawn(owner: User) -> None:
    run = make_run(owner, task="spurious", system_kind="logit")
    values = (0.9, 0.8, 0.95, 0.1, 0.2, 0.05)
    images = [seen(f"image {n}", value, COLOURS[n], measured=True) for n, value in enumerate(values)]
    for place, each in enumerate(images):
        thing = Thing("car" if place < 3 else "cup", "red", "small", 0.0, 0.0)
        scene = Scene((thing,), "grass", LIGHTS[place % len(LIGHTS)])
        Image.objects.filter(pk=each.image).update(scene=scene.to_json())
    transcript.append(run.pk, "experiment", ExperimentStarted(1, 1, "pass"))
    transcript.append(run.pk, "result", logged(*images))
    transcript.append(run.pk, "concluded", Ended("", Conclusion("It is selective.", ("SELECTIVE",))))
    answer = read_answer(Run.objects.get(pk=run.pk), SystemNameMasker(owner))
    assert answer.contrast is not None
    assert answer.parted_by == "Largest difference between conditions"
    names = [text.words for text in answer.contrast.texts if text.kind == "name"]
    assert names in (["noun: car", "All others"], ["noun: cup", "All others"])
    assert answer.auc in (0.0, 1.0)
