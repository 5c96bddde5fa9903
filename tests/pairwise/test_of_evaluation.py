"""Labels of an evaluation, compared two by two: what is compared, until how many have judged, what comes of it."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.contrib.auth.models import User

from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput, StateConflict
from experiments.evaluations.results import read_result
from experiments.judging.actions import answer
from experiments.models import (
    Evaluation,
    EvaluationKind,
    ItemStatus,
    Judge,
    Notification,
    Pair,
    PairKind,
    PairwiseTrial,
    Vote,
)
from experiments.pairwise import actions
from experiments.pairwise.desk import TrialDesk
from experiments.pairwise.of_evaluation import list_comparable
from tests.support import trials
from tests.support.people import member, signed_in

pytestmark = pytest.mark.django_db
NEURONS = ("ball", "cone", "car", "boat")
SAID = {
    "agent": NEURONS,
    "one-shot": ("red ball", "cone", "anything", "boat or car"),
    "person": ("balls", "a cone", "", "sail"),
    "shuffled": ("cone", "car", "boat", "ball"),
}


@pytest.fixture
def evaluation(owner: User) -> Evaluation:
    """Of four synthetic neurons, each labelled by four sources; the person has not labelled one."""
    row = Evaluation.objects.create(
        kind=EvaluationKind.SYNTHETIC, name="Four neurons", owner=owner, planned=True, seed=3
    )
    layer = trials.layer("concept", NEURONS)
    units = [trials.unit(number, layer) for number in range(len(NEURONS))]
    pairs = [(source, unit, text) for source, texts in SAID.items() for unit, text in zip(units, texts, strict=True)]
    for position, (source, unit, text) in enumerate(pairs, 1):
        status = ItemStatus.DONE if text else ItemStatus.LACKING
        row.items.create(
            position=position, group="mono", source=source, unit=unit, unit_name=str(unit), label=text, status=status
        )
    return row


@pytest.fixture
def trial(owner: User, evaluation: Evaluation) -> PairwiseTrial:
    """Of three units: of the cone both say the same. Two votes of each."""
    return actions.make_trial_of(Actor(owner), evaluation, ["agent", "one-shot"], judges_wanted=2)


def judge_all(name: str, trial: PairwiseTrial, prefer: str) -> list[int]:
    """Judge whatever is offered, as it is offered. Returns the pairs."""
    user = User.objects.get(username=name)
    seen = []
    while view := next(iter(TrialDesk(trial).list_next(user, 1)), None):
        pair = Pair.objects.get(pk=view.pk)
        right = pair.text_a if pair.source_a == prefer else pair.text_b
        answer(Actor(user), "trials", trial.pk, pair.pk, "first" if view.labels[0] == right else "second")
        seen.append(pair.pk)
    return seen


def test_it_takes_what_the_items_say_and_shows_the_truth(trial: PairwiseTrial, evaluation: Evaluation) -> None:
    trials.label(evaluation.items.get(position=1).unit or trials.unit(99), "something said since")
    plain = trial.pairs.filter(kind=PairKind.PLAIN)
    assert {(pair.text_a, pair.text_b, pair.truth) for pair in plain} == {
        ("ball", "red ball", "ball"),
        ("car", "anything", "car"),
        ("boat", "boat or car", "boat"),
    }
    assert trial.left_out == {"comparisons of labels that say the same": 1}
    assert trial.evaluation == evaluation
    assert list_comparable(evaluation) == list(SAID)


def test_what_cannot_be_compared_is_refused_by_name(owner: User, evaluation: Evaluation) -> None:
    by = Actor(owner)
    with pytest.raises(InvalidInput, match="two sources"):
        actions.make_trial_of(by, evaluation, ["agent", "agent"])
    with pytest.raises(InvalidInput, match=r"“import:milan”\. Choose of: agent, one-shot, person, shuffled"):
        actions.make_trial_of(by, evaluation, ["agent", "import:milan"])
    with pytest.raises(InvalidInput, match="judges a pair, not 100000"):
        actions.make_trial_of(by, evaluation, ["agent", "person"], judges_wanted=100_000)
    with pytest.raises(InvalidInput, match="pairs of two sources, not 0"):
        actions.make_trial_of(by, evaluation, ["agent", "person"], most=0)
    Evaluation.objects.update(kind=EvaluationKind.BIAS)
    evaluation.refresh_from_db()
    with pytest.raises(StateConflict, match="two by two"):
        actions.make_trial_of(by, evaluation, ["agent", "person"])
    assert not PairwiseTrial.objects.exists()


def test_each_pair_is_offered_until_it_has_its_votes_the_fewest_first(trial: PairwiseTrial, owner: User) -> None:
    clients = {name: signed_in(member(name, "REVIEWER")) for name in ("one", "two", "three", "four")}
    users = {name: User.objects.get(username=name) for name in clients}
    first, second, third = trial.pairs.order_by("position")
    for pair in (first, second):
        answer(Actor(users["one"]), "trials", trial.pk, pair.pk, "first")
    answer(Actor(users["two"]), "trials", trial.pk, first.pk, "first")
    assert [view.pk for view in TrialDesk(trial).list_next(users["three"], 9)] == [third.pk, second.pk]
    assert judge_all("three", trial, "agent") == [third.pk, second.pk]
    page = clients["four"].get(trial.get_absolute_url()).content.decode()
    assert "5 of 6 votes of people: 2 of 3 pairs have the 2 that are wanted." in " ".join(page.split())
    assert not Notification.objects.filter(user=owner, words__contains="can be closed").exists()
    assert judge_all("four", trial, "agent") == [third.pk]
    assert Notification.objects.get(user=owner, words__contains="can be closed").url == trial.get_absolute_url()
    told = clients["two"].get(f"/judging/trials/{trial.pk}/").content.decode()
    assert "Every pair has its votes" in told
    assert "Thank you for your 1." in told
    left = clients["two"].get(f"/api/v1/trials/{trial.pk}").json()
    assert (left["left"], left["judged"], left["votes"], left["judges_wanted"]) == (0, 1, 6, 2)


def test_a_vote_that_was_under_way_when_a_pair_was_full_counts(trial: PairwiseTrial) -> None:
    pair = trial.pairs.earliest("position")
    for name in ("one", "two", "three"):
        signed_in(member(name, "REVIEWER"))
        answer(Actor(User.objects.get(username=name)), "trials", trial.pk, pair.pk, "first")
    assert pair.votes.count() == 3


def test_once_it_is_closed_the_evaluation_has_its_table(
    trial: PairwiseTrial, evaluation: Evaluation, owner: User
) -> None:
    for name in ("one", "two"):
        signed_in(member(name, "REVIEWER"))
        judge_all(name, trial, "agent")
    model = Judge.objects.create(trial=trial, backbone="openai", backbone_model="gpt-4.1")
    for pair, said in zip(trial.pairs.order_by("position"), ("a", "neither", "b"), strict=True):
        Vote.objects.create(judge=model, pair=pair, answer=said, swapped=False)
    assert not read_result(evaluation).tables
    actions.close_trial(Actor(owner), trial.pk)
    (table,) = read_result(evaluation).tables
    assert table.columns == ("Preferred", "People", "gpt-4.1")
    ((name, people, alone),) = table.rows
    assert name.text == "Agent over one-shot labeller"
    assert (people.value, people.n, alone.value, alone.n) == (1.0, 6, 0.5, 2)
    assert people.low == pytest.approx(0.4385, abs=1e-3)  # Wilson, 3 of 3: two people agree on each of 3 units
    figures = {figure.key: figure for figure in read_result(evaluation).figures}
    assert figures["two_way.people.agent-one-shot"].low == people.low
    assert figures["two_way.gpt-4_1.agent-one-shot"].note == "1 cannot tell"
    client = signed_in(member("viewer", "VIEWER"))
    page = client.get(evaluation.get_absolute_url()).content.decode()
    assert "Agent over one-shot labeller" in page
    assert f'href="{trial.get_absolute_url()}"' in page
    rows = list(
        csv.reader(io.StringIO(client.get(f"/evaluations/{evaluation.pk}/figures.csv").content.decode("utf-8-sig")))
    )
    assert any(row[1] == "two_way.people.agent-one-shot" for row in rows)
    told = json.loads(client.get(f"/evaluations/{evaluation.pk}/figures.json").content)
    assert told["result"]["tables"][0]["columns"] == ["Preferred", "People", "gpt-4.1"]
    assert "Agent over one-shot labeller" in client.get(f"/evaluations/{evaluation.pk}/figures.tex").content.decode()
    assert client.get(f"/api/v1/evaluations/{evaluation.pk}").json()["tables"][0]["title"] == trial.name


def test_page_and_api_make_the_same_trial(evaluation: Evaluation) -> None:
    admin = signed_in(member("admin", "ADMIN"))
    signed_in(member("reviewer", "REVIEWER"))
    page = admin.get(evaluation.get_absolute_url()).content.decode()
    assert "Compare the labels two by two" in page
    sent = {"source": ["agent", "person"], "most": "50", "judges": "10"}
    answer = admin.post(f"/pairwise/evaluation/{evaluation.pk}/", sent)
    made = PairwiseTrial.objects.get()
    assert answer["Location"] == made.get_absolute_url()
    assert (made.judges_wanted, made.sources) == (10, ["agent", "person"])
    assert Notification.objects.filter(user__username="reviewer").count() == 1
    body = {"sources": ["agent", "person"], "most": 50}
    asked = admin.post(f"/api/v1/evaluations/{evaluation.pk}/trials", body, "application/json")
    assert asked.status_code == 201
    assert (asked.json()["evaluation"], asked.json()["judges_wanted"]) == (evaluation.pk, 10)
    assert PairwiseTrial.objects.filter(evaluation=evaluation).count() == 2
    wrong = admin.post(f"/pairwise/evaluation/{evaluation.pk}/", sent | {"judges": "0"})
    assert wrong.status_code == 400
    assert 'id="id_judges_error"' in wrong.content.decode()


def test_a_model_alone_is_no_work_for_people(owner: User, evaluation: Evaluation) -> None:
    client = signed_in(member("reviewer", "REVIEWER"))
    trial = actions.make_trial_of(Actor(owner), evaluation, ["agent", "one-shot"], judges_wanted=0)
    assert not Notification.objects.exists()
    assert "Only a model judges these labels" in client.get(f"/judging/trials/{trial.pk}/").content.decode()
    assert client.get(f"/api/v1/trials/{trial.pk}").json()["left"] == 0


def test_a_deleted_evaluation_leaves_its_trials(trial: PairwiseTrial, evaluation: Evaluation) -> None:
    evaluation.delete()
    trial.refresh_from_db()
    assert trial.evaluation is None
    assert trial.pairs.count() == 3
