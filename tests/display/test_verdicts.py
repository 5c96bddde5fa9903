"""What reviewers make of a run stands on the run: projected, shown where it may be seen, settled by one person."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput, StateConflict
from experiments.display import verdicts
from experiments.exchange import tables
from experiments.models import (
    Adjudication,
    AuditEntry,
    Layer,
    Notification,
    Review,
    ReviewQueue,
    ReviewState,
    Run,
    VisionModelRow,
)
from experiments.reviews import actions
from experiments.runs import lists
from tests.support.api_world import Script
from tests.support.builders import make_run
from tests.support.people import member, signed_in
from tests.support.reviewing import give, queue_of, reviewed, run_of, send, submit, taken

pytestmark = pytest.mark.django_db


# --- the verdict ---


def test_a_run_has_the_verdict_that_most_share_once_its_item_is_complete(owner, first, second, admin):
    queue = queue_of(owner, runs=1, reviewers_per_item=3)
    for user, verdict in ((first, "reject"), (second, "accept")):
        give(queue, user, verdict)
        assert run_of(queue).verdict == "", "the third opinion is lacking"
    give(queue, admin, "reject")
    run = run_of(queue)
    assert (run.verdict, run.verdict_opinions, run.verdict_agreeing, run.verdict_final) == ("reject", 3, 2, False)


def test_opinions_without_a_majority_are_disputed(owner, first, second):
    run = run_of(reviewed(owner, (first, "accept"), (second, "reject")))
    assert (run.verdict, run.verdict_opinions, run.verdict_agreeing) == ("split", 2, 0)


def test_closing_a_queue_has_what_there_is_count(owner, first):
    queue = queue_of(owner, runs=2, reviewers_per_item=2)
    run = give(queue, first, "revise").item.run
    assert actions.close_queue(Actor(queue.owner), queue)
    assert not actions.close_queue(Actor(queue.owner), queue)
    run.refresh_from_db()
    assert run.verdict == "revise"
    assert list(Run.objects.exclude(verdict="")) == [run]


def test_of_a_reviewer_who_judged_a_run_twice_the_newest_counts(owner, first):
    queue = reviewed(owner, (first, "accept"))
    run = run_of(queue)
    again = actions.make_queue(Actor(owner), Run.objects.all(), ReviewQueue(name="again"))
    review = taken(again, first)
    submit(review, first, verdict="reject")
    run.refresh_from_db()
    assert (run.verdict, run.verdict_opinions) == ("reject", 1)


def test_a_withdrawn_opinion_takes_the_verdict_with_it(owner, first):
    queue = queue_of(owner, runs=1)
    submit(taken(queue, first), first)
    assert run_of(queue).verdict == "revise"
    actions.undo(Actor(first), queue)
    assert run_of(queue).verdict == ""


def test_the_author_is_told_that_there_is_a_verdict_but_not_which(owner, first):
    queue = reviewed(owner, (first, "reject"))
    told = Notification.objects.get(user=owner)
    assert told.words.startswith(f"Reviewers have come to a verdict on your run {run_of(queue).pk}")
    assert "reject" not in told.words
    assert told.url.endswith("#verdict")


# --- who sees it ---


def test_a_verdict_is_hidden_from_who_is_still_to_review_the_run(owner, first, second, teammate, admin):
    run = run_of(reviewed(owner, (first, "reject")))
    actions.make_queue(Actor(owner), Run.objects.all(), ReviewQueue(name="again"), [second])
    assert [bool(verdicts.find_verdicts([run], user)) for user in (owner, teammate, first, admin, second)] == [
        True
    ] * 4 + [False]
    assert not verdicts.find_verdicts([run], None), "nobody in particular sees what somebody may not"
    for text in ("reject", "reviewed"):
        assert list(lists.runs_from({"verdict": text}, owner).runs) == [run]
        assert list(lists.runs_from({"verdict": text}, second).runs) == []
    assert list(lists.runs_from({"verdict": "none"}, second).runs) == [run]


def test_who_may_still_take_back_an_opinion_sees_no_verdict_with_those_of_others(owner, first, second):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    give(queue, first, "reject")
    submit(taken(queue, second), second, verdict="accept")
    run = run_of(queue)
    assert run.verdict == "split"
    assert verdicts.find_verdicts([run], owner)
    assert not verdicts.find_verdicts([run], second)
    Review.objects.update(submitted=timezone.now() - timedelta(hours=1))
    assert verdicts.find_verdicts([run], second)


def test_runs_are_sorted_and_filtered_by_verdict(owner, first, second):
    runs = [run_of(reviewed(owner, (first, verdict))) for verdict in ("reject", "accept", "revise")]
    none = run_of(queue_of(owner, runs=1))
    assert list(lists.runs_from({"sort": "verdict"}, owner).runs) == [runs[1], runs[2], runs[0], none]
    assert list(lists.runs_from({"verdict": "none"}, owner).runs) == [none]
    assert "There is no verdict" in lists.runs_from({"verdict": "good"}, owner).problems["verdict"]


def test_the_verdict_stands_on_run_unit_list_comparison_and_search(owner, first, second):
    queue = reviewed(owner, (first, "reject"), (second, "reject"))
    run, other = run_of(queue), run_of(queue_of(owner, runs=1))
    client = signed_in(owner)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "Rejected" in page
    assert "2 of 2 reviews" in page
    assert "second&#x27;s label" in page
    listed = client.get(f"/runs/?verdict=reject&run={run.pk},{other.pk}").content.decode()
    assert "Rejected" in listed
    assert "label”</span>" in listed, "a label that a reviewer would give instead"
    assert f'id="run-{other.pk}"' not in listed
    compared = client.get(f"/compare/?run={run.pk}&run={other.pk}").content.decode()
    assert "Rejected, 2 of 2 reviews; “second&#x27;s label” instead, says second" in compared
    found = client.get("/search/?q=respond").content.decode()
    assert 'class="verdict reject"' in found


def test_the_page_of_a_unit_has_corrected_labels_with_who_gave_them(owner, first):
    run = run_of(reviewed(owner, (first, "reject")))
    model = VisionModelRow.objects.create(name=run.model)
    Layer.objects.create(model=model, position=0, name=run.layer, kind="conv", units=run.unit + 1)
    page = signed_in(owner).get(f"/units/{run.model}/{run.layer}/{run.unit}/").content.decode()
    assert "first&#x27;s label" in page
    assert f'correction by first · <a href="/runs/{run.pk}/#verdict">' in page
    assert 'class="verdict reject"' in page


# --- final verdicts ---


def settle(queue: ReviewQueue, user: User, **words: str) -> Adjudication:
    given = {"verdict": "accept", "label": "", "reason": "The contrast set settles it."} | words
    return actions.settle_item(Actor(user), queue.items.get().pk, **given)


def test_a_final_verdict_stands_above_the_opinions_and_can_be_revised(owner, first, second, admin):
    queue = reviewed(owner, (first, "accept"), (second, "reject"))
    settle(queue, admin, label="red things")
    run = run_of(queue)
    assert (run.verdict, run.verdict_final, run.verdict_agreeing) == ("accept", True, 1)
    assert verdicts.find_verdicts([run], owner)[run.pk].corrections[0].text == "red things"
    settle(queue, admin, verdict="reject")
    assert run_of(queue).verdict == "reject"
    assert Adjudication.objects.count() == 2, "what was said before is kept"
    assert Notification.objects.filter(user=owner, words__startswith="There is a final verdict").count() == 1


@pytest.mark.parametrize(
    ("who", "why"),
    [("first", "among the reviewers"), ("owner", "Only admins, and reviewers"), ("author", "You asked for this run")],
)
def test_nobody_settles_a_dispute_of_their_own(owner, first, second, who, why):
    queue = reviewed(owner, (first, "accept"), (second, "reject"))
    if who == "author":
        Run.objects.update(owner=member("author", "REVIEWER"))
    with pytest.raises(StateConflict, match=why):
        settle(queue, User.objects.get(username=who))
    assert settle(queue, member("third", "REVIEWER"))


def test_a_final_verdict_waits_for_the_opinions_and_needs_a_reason(owner, first, admin):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    give(queue, first, "accept")
    with pytest.raises(StateConflict, match="once the item is complete"):
        settle(queue, admin)
    actions.close_queue(Actor(queue.owner), queue)
    for words in ({"reason": " "}, {"verdict": "split"}, {"label": "x" * 501}, {"reason": "zero \x00"}):
        with pytest.raises(InvalidInput):
            settle(queue, admin, **words)
    assert settle(queue, admin)


def test_a_final_verdict_is_given_on_the_page_of_the_item_and_recorded(owner, first, second, admin):
    queue = reviewed(owner, (first, "accept"), (second, "reject"))
    address, client = f"/review/{queue.pk}/items/1/", signed_in(admin)
    assert "Settle what becomes of this run" in client.get(address).content.decode()
    refused = client.post(f"{address}final/", {"verdict": "revise", "corrected_label": "kept words"})
    assert refused.status_code == 422
    assert "kept words" in refused.content.decode()
    client.post(f"{address}final/", {"verdict": "revise", "reason": "Too few <b>samples</b>."})
    assert run_of(queue).verdict == "revise"
    entry = AuditEntry.objects.get(verb="review.adjudicated")
    assert "revise" not in f"{entry.row_words} {entry.details}", "admins who read the audit may be reviewers too"
    assert ">To be revised</span>" in signed_in(owner).get(f"/review/{queue.pk}/").content.decode()
    page = signed_in(owner).get(f"/runs/{run_of(queue).pk}/").content.decode()
    assert "Too few &lt;b&gt;samples&lt;/b&gt;." in page
    assert "Settle what" not in signed_in(first).get(address).content.decode()


# --- undo, once others' opinions were open ---


@pytest.mark.parametrize("address", ["/review/{}/", "/review/{}/items/1/", "/api/v1/queues/{}/items/1/reviews"])
def test_an_opinion_stands_once_those_of_others_were_shown(owner, first, second, address):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    give(queue, first, "reject")
    submit(taken(queue, second), second, verdict="accept")
    assert actions.find_undoable(queue, second)
    client = signed_in(second)
    client.get(address.format(queue.pk))
    assert not actions.find_undoable(queue, second)
    client.post(f"/review/{queue.pk}/undo/")
    assert Review.objects.get(reviewer=second).state == ReviewState.SUBMITTED
    with pytest.raises(StateConflict, match="have seen other reviews of item 1"):
        actions.undo(Actor(second), queue)


def test_an_opinion_that_was_settled_is_not_taken_back(owner, first, admin):
    queue = queue_of(owner, runs=1, reviewers_per_item=1)
    review = taken(queue, first)
    submit(review, first)
    actions.settle_item(Actor(admin), review.item_id, "accept", "", "The evidence is clear.")
    with pytest.raises(StateConflict, match="There is a final verdict on item 1"):
        actions.undo(Actor(first), queue)
    assert Review.objects.get(pk=review.pk).state == ReviewState.SUBMITTED


def test_figures_of_agreement_show_opinions_too(owner, first, second):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    give(queue, first, "reject")
    submit(taken(queue, second), second)
    signed_in(second).get(f"/review/{queue.pk}/agreement/")
    with pytest.raises(StateConflict):
        actions.undo(Actor(second), queue)


def test_one_s_own_opinion_alone_is_taken_back_though_it_was_looked_at(owner, first):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    submit(taken(queue, first), first)
    signed_in(first).get(f"/review/{queue.pk}/items/1/")
    actions.undo(Actor(first), queue)


def test_an_admin_who_may_review_sees_no_open_opinion_before_their_own(owner, first, admin):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    review = taken(queue, first)
    send(signed_in(first), f"/review/{queue.pk}/items/1/submit/", **WRITTEN, note="SECRETNOTE")
    client = signed_in(admin)
    page = client.get(f"/review/{queue.pk}/agreement/?figures=now").content.decode()
    assert "1 review left out" in page
    assert "SECRETNOTE" not in page
    trail = client.get("/settings/audit/?verb=review.submitted").content.decode()
    assert f"review of item {review.item_id}" in trail
    assert "reject" not in trail
    queue.reviewers.set([first])
    assert "left out" not in client.get(f"/review/{queue.pk}/agreement/").content.decode(), (
        "who may not review sees all"
    )


WRITTEN = {"supported": "4", "specific": "3", "complete": "5", "confounds": "2", "samples": "1", "verdict": "reject"}


# --- a run of one's own is put up for review ---


def test_a_researcher_puts_a_run_up_into_an_open_queue(owner, admin, first):
    queue = queue_of(admin, runs=1, reviewers=[first])
    run = run_of(queue_of(owner, runs=1))
    client = signed_in(owner)
    assert "Add to review" in client.get(f"/runs/{run.pk}/").content.decode()
    assert queue.name in client.get(f"/runs/{run.pk}/review/").content.decode()
    client.post(f"/runs/{run.pk}/review/", {"queue": queue.pk})
    assert list(queue.items.values_list("run", "position"))[-1] == (run.pk, 2)
    assert "added run" in Notification.objects.filter(user=first).first().words
    assert AuditEntry.objects.filter(verb="run.put_up", row_pk=run.pk).exists()
    with pytest.raises(StateConflict, match="in this queue already"):
        actions.add_run(Actor(owner), run, queue.pk)


def test_who_may_not_put_a_run_up_is_told_why(owner, admin, teammate, first):
    queue, run = queue_of(admin, runs=1), run_of(queue_of(owner, runs=1))
    assert signed_in(teammate).post(f"/runs/{run.pk}/review/", {"queue": queue.pk}).status_code == 403
    assert signed_in(first).post(f"/runs/{run.pk}/review/", {"queue": queue.pk}).status_code == 403
    Run.objects.filter(pk=run.pk).update(status="running")
    assert signed_in(owner).post(f"/runs/{run.pk}/review/", {"queue": queue.pk}).status_code == 403
    Run.objects.filter(pk=run.pk).update(status="concluded")
    actions.close_queue(Actor(queue.owner), queue)
    run.refresh_from_db()
    with pytest.raises(StateConflict, match="closed"):
        actions.add_run(Actor(owner), run, queue.pk)


# --- the same by the API ---


def test_scripts_put_runs_up_and_give_final_verdicts(owner, first, second, admin):
    run = make_run(owner, status="concluded")
    asker, script = Script(owner), Script(admin)
    made = asker.post("/queues", {"name": "Own", "runs": [run.pk], "reviewers_per_item": 2, "reviewers": ["x"]})
    assert (made.status_code, "these user names: x" in made.json()["detail"]) == (422, True)
    made = asker.post("/queues", {"name": "Own", "runs": [run.pk], "reviewers_per_item": 2})
    assert made.status_code == 201
    queue = ReviewQueue.objects.get(name="Own")
    other = make_run(owner, status="concluded")
    assert asker.post(f"/queues/{queue.pk}/items", {"run": other.pk}).json()["number"] == 2
    assert asker.post(f"/queues/{queue.pk}/items", {"run": other.pk}).status_code == 409
    assert Script(second).post(f"/queues/{queue.pk}/close").status_code == 403
    final, body = f"/queues/{queue.pk}/items/1/final-verdicts", {"verdict": "accept", "reason": "Shown directly."}
    assert script.post(final, body).status_code == 409, "nobody has reviewed it"
    give(queue, first, "reject")
    assert asker.post(f"/queues/{queue.pk}/close").json()["closed"]
    assert asker.get(f"/runs/{run.pk}").json()["verdict"]["value"] == "reject"
    assert script.post(final, body | {"corrected_label": "red"}).status_code == 201
    assert [each["reason"] for each in asker.get(final).json()] == ["Shown directly."]
    told = {"value": "accept", "final": True, "reviews": 1, "agreeing": 0, "corrected_labels": ["red"]}
    assert asker.get(f"/runs/{run.pk}").json()["verdict"] == told
    listed = asker.get("/runs?verdict=final").json()["items"]
    assert [(each["id"], each["verdict"]) for each in listed] == [(run.pk, told)]
    assert asker.get("/runs?verdict=good").status_code == 422


def test_the_api_hides_a_verdict_from_who_is_to_review_the_run_unseen(owner, first, second):
    run = run_of(reviewed(owner, (first, "reject")))
    actions.make_queue(Actor(owner), Run.objects.all(), ReviewQueue(name="again"), [second])
    script = Script(second)
    assert script.get(f"/runs/{run.pk}").json()["verdict"] is None
    assert script.get("/runs?verdict=reviewed").json()["items"] == []
    assert [each["verdict"] for each in script.get("/runs").json()["items"]] == [None]


def test_a_file_of_runs_has_verdicts_that_everybody_may_see(owner, first, second):
    run = run_of(reviewed(owner, (first, "reject")))
    hidden = run_of(reviewed(owner, (first, "accept")))
    blind = ReviewQueue(name="again")
    actions.make_queue(Actor(owner), Run.objects.filter(pk=hidden.pk), blind, [second])
    rows = next(tables.RUNS.batches(Run.objects.order_by("pk"), lambda *_: None))
    assert [(row["run"], row["verdict"], row["reviews"]) for row in rows] == [
        (run.pk, "reject", 1),
        (hidden.pk, "", 0),
    ]
