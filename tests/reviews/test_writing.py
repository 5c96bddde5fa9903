"""Queues, reservations and reviews: whose turn an item is, drafts that are never lost, opinions that stay hidden."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from experiments.core import blindness
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput, OutOfDate, StateConflict
from experiments.models import Review, ReviewItem, ReviewQueue, ReviewState, Run
from experiments.reviews import actions, lists, reservation, rubric
from tests.support.builders import make_run
from tests.support.people import member
from tests.support.reviewing import lapse, opinion, queue_of, submit, taken
from tests.support.seeding.__main__ import main as seeding

# --- reservations ---


def test_each_reviewer_gets_an_item_of_their_own(owner, first, second):
    queue = queue_of(owner)
    assert [taken(queue, user).item.position for user in (first, second)] == [1, 2]
    assert lists.with_progress(lists.with_items(ReviewQueue.objects.all()))[0].writing == 0, (
        "nobody has said anything yet"
    )
    Review.objects.update(version=2)
    assert lists.with_progress(lists.with_items(ReviewQueue.objects.all()))[0].writing == 2
    assert reservation.reserve_item(queue, member("third", "REVIEWER")) is None
    assert taken(queue, first).item.position == 1, "the same again, as long as it is not done"


def test_several_reviewers_have_slots_of_the_same_item(owner, first, second):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    assert [taken(queue, user).slot for user in (first, second)] == [1, 2]
    assert not blindness.waiting(member("third", "REVIEWER")).exists()


def test_a_reservation_that_lapses_goes_to_another_and_the_draft_stays(owner, first, second):
    queue = queue_of(owner, runs=1)
    review = taken(queue, first)
    actions.save_draft(Actor(first), review.item_id, 1, opinion(note="half way"))
    lapse(review)
    assert taken(queue, second).slot == 1
    review.refresh_from_db()
    assert (review.slot, review.note, review.state) == (None, "half way", ReviewState.DRAFT)


def test_saving_renews_the_reservation(owner, first):
    queue = queue_of(owner, runs=1)
    review = taken(queue, first)
    lapse(review)
    actions.save_draft(Actor(first), review.item_id, review.version, opinion())
    review.refresh_from_db()
    assert review.holds()


def test_only_those_whom_the_queue_names_may_review(owner, first, second):
    queue = queue_of(owner, reviewers=[second])
    assert reservation.reserve_item(queue, first) is None
    assert taken(queue, second)


def test_a_researcher_gets_nothing(owner):
    assert reservation.reserve_item(queue_of(owner), owner) is None
    assert not blindness.waiting(owner).exists()


def test_a_declined_item_goes_to_another(owner, first, second):
    queue = queue_of(owner, runs=1)
    review = taken(queue, first)
    with pytest.raises(InvalidInput, match="Give a reason"):
        actions.decline(Actor(first), review.item_id, "  ")
    actions.decline(Actor(first), review.item_id, "I made this run.")
    assert reservation.reserve_item(queue, first) is None
    assert taken(queue, second).item_id == review.item_id
    with pytest.raises(actions.NotSubmitted, match="You declined"):
        submit(review, first)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("slots", [1, 2])
def test_people_who_come_at_the_same_moment_never_share_a_slot(slots):
    queue = queue_of(member("asker", "RESEARCHER"), runs=3, reviewers_per_item=slots)
    people = [member(f"reviewer{number}", "REVIEWER") for number in range(6)]
    start, got = threading.Barrier(len(people)), []

    def come(user: User) -> None:
        start.wait()
        try:
            got.append(reservation.reserve_item(queue, user))
        finally:
            connection.close()

    threads = [threading.Thread(target=come, args=(user,)) for user in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = [(review.item_id, review.slot) for review in got if review]
    assert len(held) == len(set(held)) == min(6, 3 * slots)


@pytest.mark.django_db(transaction=True)
def test_two_who_want_a_lapsed_place_at_the_same_moment_get_it_once():
    queue = queue_of(member("asker", "RESEARCHER"), runs=1)
    lapse(taken(queue, member("gone", "REVIEWER")))
    people = [member(f"reviewer{number}", "REVIEWER") for number in range(2)]
    start, got = threading.Barrier(2), []

    def come(user: User) -> None:
        start.wait()
        try:
            got.append(reservation.reserve_item(queue, user))
        finally:
            connection.close()

    threads = [threading.Thread(target=come, args=(user,)) for user in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(review is not None for review in got) == 1
    assert Review.objects.filter(slot=1).count() == 1


# --- drafts and submissions ---


def test_a_draft_changed_in_two_tabs_is_never_overwritten_unseen(owner, first):
    review = taken(queue_of(owner), first)
    assert actions.save_draft(Actor(first), review.item_id, 1, opinion(note="from the left tab")).version == 2
    with pytest.raises(OutOfDate):
        actions.save_draft(Actor(first), review.item_id, 1, opinion(note="from the right tab"))
    assert Review.objects.get().note == "from the left tab"
    again = actions.save_draft(Actor(first), review.item_id, 1, opinion(note="from the left tab"))
    assert again.version == 3, "the same is no conflict"


@pytest.mark.parametrize("field", [*rubric.NAMES, "verdict"])
def test_what_is_not_filled_in_is_named_and_the_draft_kept(owner, first, field):
    review = taken(queue_of(owner), first)
    with pytest.raises(InvalidInput, match="Still to be filled in"):
        submit(review, first, **{field: None}, note="kept")
    review.refresh_from_db()
    assert (review.state, review.note) == (ReviewState.DRAFT, "kept")


def test_who_submits_twice_is_told_and_the_first_stands(owner, first):
    review = taken(queue_of(owner), first)
    submit(review, first, note="first")
    with pytest.raises(actions.NotSubmitted, match="That one stands"):
        submit(review, first, note="second")
    assert Review.objects.get().note == "first"


def test_who_submits_after_the_reservation_lapsed_is_taken_if_the_place_is_free(owner, first):
    review = taken(queue_of(owner), first)
    lapse(review)
    submit(review, first)
    assert ReviewItem.objects.get(pk=review.item_id).complete


def test_whose_place_was_taken_is_told_and_may_send_an_additional_opinion(owner, first, second):
    queue = queue_of(owner, runs=1)
    review = taken(queue, first)
    lapse(review)
    other = taken(queue, second)
    with pytest.raises(actions.NotSubmitted) as refused:
        submit(review, first, note="mine")
    assert refused.value.reason == "taken"
    review.refresh_from_db()
    assert (review.note, review.state) == ("mine", ReviewState.DRAFT)
    submit(review, first, additional=True)
    assert not ReviewItem.objects.get().complete, "an additional review is none of those asked for"
    submit(other, second)
    assert ReviewItem.objects.get().complete


def test_a_run_that_went_on_is_told_and_the_draft_kept(owner, first):
    review = taken(queue_of(owner, runs=1), first)
    Run.objects.update(last_seq=7)
    with pytest.raises(actions.NotSubmitted, match="2 new events") as refused:
        submit(review, first, seq=5, note="kept")
    assert refused.value.reason == "run"
    assert Review.objects.get().note == "kept"
    submit(Review.objects.get(), first, seq=7)
    assert Review.objects.get().seq == 7


def test_a_submission_is_taken_back_within_ten_minutes(owner, first):
    queue = queue_of(owner, runs=1)
    review = taken(queue, first)
    submit(review, first)
    actions.undo(Actor(first), queue)
    item = ReviewItem.objects.get()
    assert not item.complete
    review.refresh_from_db()
    assert (review.state, review.slot, review.supported) == (ReviewState.DRAFT, 1, 4)
    submit(review, first)
    Review.objects.update(submitted=timezone.now() - timedelta(minutes=11))
    with pytest.raises(StateConflict, match="from the last 10 minutes"):
        actions.undo(Actor(first), queue)


def test_a_closed_queue_takes_nothing_and_keeps_drafts(owner, first):
    queue = queue_of(owner)
    review = taken(queue, first)
    assert actions.close_queue(Actor(queue.owner), queue)
    assert not actions.close_queue(Actor(queue.owner), queue)
    with pytest.raises(actions.NotSubmitted, match="closed in the meantime"):
        submit(review, first, note="kept")
    assert Review.objects.get().note == "kept"
    assert reservation.reserve_item(queue, first) is None


@pytest.mark.parametrize(
    "fields",
    [
        *({"supported": "6"}, {"supported": "0"}, {"supported": "two"}, {"verdict": "<b>"}, {"samples": "٣"}),
        *({"note": "x" * 8001}, {"corrected_label": "x" * 501}, {"note": "a\x00b"}),
    ],
)
def test_fields_that_make_no_sense_are_refused_with_words(fields):
    with pytest.raises(rubric.UnreadableOpinion):
        opinion(**fields)


# --- blindness ---


def test_opinions_are_hidden_until_one_s_own_is_submitted(owner, first, second, teammate):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    mine, other = taken(queue, first), taken(queue, second)
    submit(mine, first)
    assert not blindness.list_visible_reviews(second).exists()
    assert not blindness.list_visible_reviews(teammate).exists()
    assert list(blindness.list_visible_reviews(first)) == [mine]
    assert list(blindness.list_blinded_runs(second)) == [queue.items.get().run_id]
    assert not blindness.is_blind(first, queue.items.get().run_id)
    submit(other, second)
    for user in (first, second, teammate):
        assert blindness.list_visible_reviews(user).count() == 2
    assert not blindness.is_blind(second, queue.items.get().run_id)


def test_a_draft_keeps_its_writer_blind_even_when_the_item_is_complete(owner, first, second):
    queue = queue_of(owner, runs=1)
    late = taken(queue, first)
    lapse(late)
    submit(taken(queue, second), second)
    assert not blindness.list_visible_reviews(first).exists()
    assert blindness.is_blind(first, queue.items.get().run_id)
    submit(late, first, additional=True)
    assert blindness.list_visible_reviews(first).count() == 2


def test_an_open_queue_hides_nothing_but_drafts(owner, first, second):
    queue = queue_of(owner, runs=1, reviewers_per_item=2, blind=False)
    taken(queue, second)
    submit(taken(queue, first), first)
    assert blindness.list_visible_reviews(second).count() == 1
    assert not blindness.list_blinded_runs(second).exists()


def test_opinions_that_lie_apart_are_marked(owner, first, second):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    submit(taken(queue, first), first, supported=5)
    submit(taken(queue, second), second, supported=2)
    row = lists.item_rows(list(queue.items.select_related("queue")), first)[0]
    assert [line.name for line, _, apart in row.lines if apart] == ["supported"]


# --- queues ---


def test_a_queue_keeps_order_and_what_was_seen(owner):
    queue = queue_of(owner, runs=3)
    rows = list(queue.items.values_list("position", "run_id"))
    assert rows == [(place, run.pk) for place, run in enumerate(Run.objects.order_by("pk"), 1)]
    (counted,) = lists.with_progress(lists.with_items(ReviewQueue.objects.all()))
    assert (counted.total, counted.complete, counted.writing) == (3, 0, 0)


@pytest.mark.django_db(transaction=True)
def test_made_up_reviews_fill_queues_and_leave_something_to_do(owner, first):
    seeding(["reviews", "41"])
    assert Review.objects.filter(state=ReviewState.SUBMITTED).count() == 41
    (counted,) = lists.with_progress(lists.with_items(ReviewQueue.objects.all()))
    assert (counted.total, counted.complete) == (221, 20)
    assert taken(ReviewQueue.objects.get(), first).item.position == 21


def test_made_up_reviews_do_not_mix_with_real_ones(owner):
    make_run(owner)
    with pytest.raises(SystemExit, match="holds real runs"):
        seeding(["reviews", "4"])
    assert not Review.objects.exists()
