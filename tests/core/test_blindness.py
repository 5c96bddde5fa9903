"""Who may see whose opinion, where a run is judged more than once: in several queues, or by one more than was asked."""

from __future__ import annotations

from html import unescape

import pytest

from experiments.core import blindness
from experiments.core.actors import Actor
from experiments.display import verdicts
from experiments.models import ReviewQueue, Run
from experiments.reviews import actions
from tests.support.people import signed_in
from tests.support.reviewing import give, lapse, queue_of, reviewed, run_of, submit, taken

pytestmark = pytest.mark.django_db


def test_an_additional_opinion_that_may_be_taken_back_does_not_show_the_verdict(owner, first, second):
    queue = queue_of(owner, runs=1)
    late = taken(queue, first)
    lapse(late)
    give(queue, second, "reject")
    run = run_of(queue)
    submit(late, first, verdict="accept", additional=True)
    assert verdicts.find_verdicts([run], first) == {}
    assert signed_in(first).get(f"/runs/?verdict=reviewed&run={run.pk}").context["found"].runs.count() == 0
    assert actions.find_undoable(queue, first)
    signed_in(first).get(f"/review/{queue.pk}/items/1/")
    assert not actions.find_undoable(queue, first), "the other opinion was shown"
    assert run.pk in verdicts.find_verdicts([run_of(queue)], first)


# --- several queues on one run ---


@pytest.mark.parametrize("over", [False, True], ids=["complete", "closed"])
def test_opinions_of_a_queue_wait_for_who_is_to_judge_the_run_in_another(owner, first, second, admin, over):
    done = reviewed(owner, (first, "reject"), (admin, "accept"), reviewers=[])
    if over:
        actions.close_queue(Actor(done.owner), done)
    again = actions.make_queue(Actor(owner), Run.objects.all(), ReviewQueue(name="again"), [second])
    assert blindness.list_visible_reviews(first).count() == 2
    assert not blindness.list_visible_reviews(second).exists()
    client, item = signed_in(second), f"/review/{done.pk}/items/1/"
    for address in (item, f"/review/{done.pk}/", f"/review/{done.pk}/agreement/?figures=now"):
        assert "first's label" not in unescape(client.get(address).content.decode()), address
    assert client.get(f"/api/v1/queues/{done.pk}/items/1/reviews").json() == []
    submit(taken(again, second), second)
    assert actions.find_undoable(again, second)
    assert "first's label" in unescape(client.get(item).content.decode())
    assert not actions.find_undoable(again, second), "what others say of the run was shown, in whatever queue"


def test_why_others_declined_waits_too(owner, first, second):
    queue = queue_of(owner, runs=1, blind=False)
    actions.decline(Actor(first), taken(queue, first).item_id, "I know this unit.")
    again = actions.make_queue(Actor(owner), Run.objects.all(), ReviewQueue(name="again"), [second])
    assert "I know this unit." not in signed_in(second).get(f"/review/{queue.pk}/").content.decode()
    submit(taken(again, second), second)
    assert "I know this unit." in signed_in(second).get(f"/review/{queue.pk}/").content.decode()
