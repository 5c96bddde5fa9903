"""Blind two-way choices: which pairs there are, what a judge sees, what is kept, and what is told when."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core.actors import Actor
from experiments.models import Answer, AuditEntry, Label, Pair, PairKind, PairwiseTrial, Review, ReviewQueue, Unit, Vote
from experiments.pairwise import actions, judging, sampling, sources
from experiments.pairwise.form import draft_trial
from experiments.pairwise.results import trial_results
from tests.support import trials
from tests.support.builders import make_run
from tests.support.people import member, signed_in
from tests.support.trials import AGENT, MILAN, SECRETS

pytestmark = pytest.mark.django_db


@pytest.fixture
def reviewer(db: None) -> User:
    return member("reviewer", "REVIEWER")


@pytest.fixture
def as_reviewer(reviewer: User) -> Client:
    client = Client()
    client.force_login(reviewer)
    return client


@pytest.fixture
def as_admin(db: None) -> Client:
    return signed_in(member("admin", "ADMIN"))


@pytest.fixture
def trial(owner: User) -> PairwiseTrial:
    """Twelve pairs of an agent's label and an imported one; three shown twice, three with a known answer."""
    trials.labelled(owner)
    return trials.trial(owner)


# --- sources ---


def test_a_source_is_known_by_who_wrote_the_label(owner: User) -> None:
    each = trials.unit(1)
    trials.label(each, "red", run=make_run(owner))
    trials.label(each, "green", run=make_run(owner, backbone_model="large"))
    trials.label(each, "blue", run=make_run(owner, backbone="person"))
    trials.label(each, "a red thing", "milan")
    trials.label(each, "a thing", "baseline")
    assert {source.key: source.labels for source in sources.list_sources()} == {
        "agent": 2,
        "agent:scripted": 1,
        "agent:scripted:large": 1,
        "person": 1,
        "baseline": 1,
        "import:milan": 1,
    }
    said = sources.labels_of(Unit.objects.all(), ["agent", "agent:scripted", "person", "import:milan"])[each.pk]
    assert {key: one.text for key, one in said.items()} == {
        "agent": "green",
        "agent:scripted": "red",
        "person": "blue",
        "import:milan": "a red thing",
    }


def test_labels_of_one_run_stand_together_and_the_newest_run_counts(owner: User) -> None:
    each, old, new = trials.unit(1), make_run(owner), make_run(owner)
    for text, run in (("old", old), ("red balls", new), ("blue cones", new)):
        trials.label(each, text, run=run)
    assert sources.labels_of(Unit.objects.all(), [AGENT])[each.pk][AGENT].text == "red balls; blue cones"


def test_what_a_reviewer_corrected_is_a_source(owner: User, reviewer: User) -> None:
    each, run = trials.unit(7), make_run(owner)
    item = ReviewQueue.objects.create(name="all", owner=owner).items.create(run=run, position=1)
    Review.objects.create(item=item, reviewer=reviewer, state="submitted", corrected_label="red toys")
    assert [source.key for source in sources.list_sources()] == ["correction"]
    assert sources.labels_of(Unit.objects.all(), ["correction"])[each.pk]["correction"].text == "red toys"


# --- drawing ---


def test_a_trial_holds_each_comparison_once_and_some_to_measure_the_judge(trial: PairwiseTrial) -> None:
    assert Counter(trial.pairs.values_list("kind", flat=True)) == {"plain": 12, "repeat": 3, "known": 3}
    plain = trial.pairs.filter(kind=PairKind.PLAIN)
    assert len({pair.unit_id for pair in plain}) == 12
    assert {(pair.source_a, pair.source_b) for pair in plain} == {(AGENT, MILAN)}
    assert [pair.position for pair in trial.pairs.all()] == list(range(1, 19))


def test_a_repeated_pair_comes_well_after_its_first_time(trial: PairwiseTrial) -> None:
    for pair in trial.pairs.filter(kind=PairKind.REPEAT).select_related("original"):
        assert (pair.unit_id, pair.text_a, pair.text_b) == (
            pair.original.unit_id,
            pair.original.text_a,
            pair.original.text_b,
        )
        assert pair.position > pair.original.position
        assert pair.position - pair.original.position > sampling.GAP or pair.position > 12


def test_a_gold_pair_sets_a_label_against_one_of_the_same_source_for_another_unit(trial: PairwiseTrial) -> None:
    for pair in trial.pairs.filter(kind=PairKind.KNOWN):
        assert pair.source_a == pair.source_b
        assert pair.label_a.units.get() == pair.unit
        assert pair.label_b.units.get() != pair.unit
        assert pair.text_a != pair.text_b


def test_the_same_seed_draws_the_same_pairs_and_another_others(trial: PairwiseTrial, owner: User) -> None:
    def drawn(made: PairwiseTrial) -> list[tuple[str, str]]:
        return [(pair.text_a, pair.text_b) for pair in made.pairs.all()]

    assert drawn(trials.trial(owner)) == drawn(trial)
    assert drawn(trials.trial(owner, seed=4)) != drawn(trial)


def test_what_is_left_out_is_counted_with_why(owner: User) -> None:
    units = trials.labelled(owner, 6)
    Label.objects.filter(text="something red").update(text="Red  BALLS.")
    Label.objects.filter(text="something green").delete()
    units[2].profiles.all().delete()
    form = trials.form(most=2, repeats=0, known_answers=0)
    assert form.is_valid()
    drawn, pairs = draft_trial(form)
    assert [pair.kind for pair in pairs] == [PairKind.PLAIN] * 2
    assert drawn.left_out == {
        sampling.ONE_SOURCE: 1,
        sampling.NOTHING_TO_SEE: 1,
        sampling.SAME_WORDS: 1,
        sampling.TOO_MANY: 1,
    }


def test_a_synthetic_neuron_is_shown_by_its_truth(owner: User, as_reviewer: Client) -> None:
    toys = trials.layer("concept", ("red ball", "blue cone <b>"))
    each = trials.unit(1, toys)
    trials.label(each, "cones", run=make_run(owner))
    trials.label(each, "blue")
    made = trials.trial(owner, repeats=0, known_answers=0)
    page = as_reviewer.get(f"/judging/trials/{made.pk}/").content.decode()
    assert "blue cone &lt;b&gt;" in page
    assert "<img" not in page


# --- judging ---


def test_a_judge_sees_two_labels_the_exemplars_and_not_whose_they_are(
    as_reviewer: Client, trial: PairwiseTrial
) -> None:
    page = as_reviewer.get(f"/judging/trials/{trial.pk}/").content.decode()
    first = trial.pairs.first()
    deck = page[page.index('id="deck"') :]
    deck = deck[: deck.index("</main>")]
    assert first.text_a in deck
    assert first.text_b in deck
    assert f"/images/{first.profile.exemplars.get().image_id}/thumb-320.webp" in deck
    assert deck.count('<article class="pair"') == 2
    assert deck.count(" hidden>") >= 1, "the second is loaded behind"
    words = re.sub(r'value="\w{64}"', "", deck).lower()  # a short word may occur in a random token
    assert not [secret for secret in SECRETS if secret in words]


def test_sources_are_told_nowhere_until_the_trial_is_closed(as_admin: Client, trial: PairwiseTrial) -> None:
    trials.judged(as_admin, trial, MILAN)
    page = as_admin.get(f"/pairwise/{trial.pk}/").content.decode()
    assert "Preferences" not in page
    assert "something red" not in page
    assert as_admin.get(f"/judging/trials/{trial.pk}/answers.csv").status_code == 404
    as_admin.post(f"/judging/trials/{trial.pk}/close/")
    assert "Preferences" in as_admin.get(f"/pairwise/{trial.pk}/").content.decode()
    assert as_admin.get(f"/judging/trials/{trial.pk}/answers.csv").status_code == 200


def test_the_order_differs_between_judges_and_is_turned_round_in_a_repetition(trial: PairwiseTrial) -> None:
    orders = {key: [judging.is_swapped(trial, pair, key) for pair in trial.pairs.all()] for key in "abcdef"}
    assert len({tuple(order) for order in orders.values()}) > 3
    for pair in trial.pairs.filter(kind=PairKind.REPEAT).select_related("original"):
        for key in orders:
            assert judging.is_swapped(trial, pair, key) != judging.is_swapped(trial, pair.original, key)


def test_an_answer_is_kept_as_a_side_of_the_pair_with_the_order_shown(
    as_reviewer: Client, trial: PairwiseTrial
) -> None:
    pairs = list(trial.pairs.all())
    assert any(pair.original_id for pair in pairs), "a repeated pair stands the other way round, whatever is drawn"
    for pair in pairs:
        side = trials.on_screen(as_reviewer, pair.pk, "a")
        as_reviewer.post(f"/judging/trials/{trial.pk}/answer/", {"item": pair.pk, "answer": side, "seconds": "2.5"})
    kept = Vote.objects.all()
    assert {choice.answer for choice in kept} == {"a"}
    assert {choice.swapped for choice in kept} == {True, False}
    assert {choice.seconds for choice in kept} == {2.5}
    assert AuditEntry.objects.filter(verb="vote.cast").count() == len(pairs)


def test_one_judges_answers_are_not_anothers(as_reviewer: Client, as_admin: Client, trial: PairwiseTrial) -> None:
    trials.judged(as_reviewer, trial, AGENT)
    assert "All 18 pairs are judged" in as_reviewer.get(f"/judging/trials/{trial.pk}/").content.decode()
    assert "0</span> of 18" in as_admin.get(f"/judging/trials/{trial.pk}/").content.decode()


def test_nothing_is_taken_once_a_trial_is_closed(as_reviewer: Client, trial: PairwiseTrial) -> None:
    actions.close_trial(Actor(trial.owner), trial.pk)
    pair = trial.pairs.first().pk
    page = as_reviewer.post(f"/judging/trials/{trial.pk}/answer/", {"item": pair, "answer": "first"}, follow=True)
    assert "trial is closed" in page.content.decode()
    assert as_reviewer.get(f"/judging/trials/{trial.pk}/").status_code == 302
    assert not Vote.objects.exists()


# --- results ---


def test_preferences_and_what_a_judge_is_worth(as_reviewer: Client, as_admin: Client, trial: PairwiseTrial) -> None:
    trials.judged(as_reviewer, trial, AGENT)
    for pair in trial.pairs.all():
        as_admin.post(f"/judging/trials/{trial.pk}/answer/", {"item": pair.pk, "answer": "first"})
    actions.close_trial(Actor(trial.owner), trial.pk)
    found = trial_results(trial)
    careful, careless = found.people
    cell = careful.table.rows[0][1][1]
    assert (cell.row, cell.column, cell.preferred.hits, cell.preferred.n) == (
        "Any agent",
        "milan (imported)",
        12,
        12,
    )
    assert cell.preferred.low == pytest.approx(0.7575, abs=1e-3), "Wilson's interval of 12 of 12"
    assert careful.table.rows[1][1][0].preferred.hits == 0
    assert (careful.repeated.value, careful.known_answers.value) == (1.0, 1.0)
    # Which label is shown first is drawn by trial and pair: the judge chose the first as often as the draw had it so
    as_first = [(vote.answer == Answer.A) != vote.swapped for vote in Vote.objects.filter(judge=careful.judge)]
    assert (careful.first.hits, careful.first.n) == (sum(as_first), 18)
    assert (careless.repeated.value, careless.first.value, careless.first.decides) == (0.0, 1.0, 1)
    assert found.together.votes == 24
    assert found.together.pairs == 12
    assert found.backbones == []


def test_who_cannot_tell_is_counted_beside_and_decides_nothing(as_reviewer: Client, trial: PairwiseTrial) -> None:
    for pair in trial.pairs.all():
        as_reviewer.post(f"/judging/trials/{trial.pk}/answer/", {"item": pair.pk, "answer": "neither"})
    actions.close_trial(Actor(trial.owner), trial.pk)
    (judge,) = trial_results(trial).people
    cell = judge.table.rows[0][1][1]
    assert (cell.preferred.n, cell.preferred.value, cell.neither) == (0, None, 12)
    assert (judge.known_answers.value, judge.repeated.value, judge.first.value) == (0.0, 1.0, None)


def test_the_file_holds_every_choice_and_every_pair(as_reviewer: Client, trial: PairwiseTrial) -> None:
    pair = trial.pairs.first()
    Pair.objects.filter(pk=pair.pk).update(text_a="=cmd()")
    as_reviewer.post(f"/judging/trials/{trial.pk}/answer/", {"item": pair.pk, "answer": "first", "seconds": "3"})
    actions.close_trial(Actor(trial.owner), trial.pk)
    text = as_reviewer.get(f"/judging/trials/{trial.pk}/answers.csv").content.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 18
    assert (rows[0]["judge"], rows[0]["judged_by"], rows[0]["seconds"]) == ("reviewer", "person", "3.0")
    assert rows[0]["label_a"] == "'=cmd()"
    assert {row["judge"] for row in rows[1:]} == {""}
