"""The pages of review: who may do what there, what scripts and forms are told, what stays hidden at every address."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.messages import get_messages

from experiments.core import transcript
from experiments.core.actors import Actor
from experiments.models import AuditEntry, Review, ReviewQueue, ReviewState, Run
from experiments.reviews import actions, rubric
from tests.support import builders
from tests.support.api_world import Script, fill
from tests.support.builders import make_run
from tests.support.people import member, signed_in
from tests.support.reviewing import FULL_FORM, send

pytestmark = pytest.mark.django_db
SECRET = "the label says <b>too much</b>"


def queue_of(owner: User, runs: int = 2, **fields: Any) -> ReviewQueue:
    keys = [make_run(owner, status="concluded", question=f"Run number {n}?").pk for n in range(runs)]
    reviewers = fields.pop("reviewers", [])
    queue = ReviewQueue(**({"name": "Pass one", "note": "Look at <i>confounds</i>."} | fields))
    return actions.make_queue(Actor(owner), Run.objects.filter(pk__in=keys).order_by("pk"), queue, reviewers)


def said(response: Any) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]


# --- making a queue ---


def test_an_admin_queues_what_the_filters_choose(admin, owner):
    for unit, status in ((1, "concluded"), (1, "failed"), (1, "running"), (2, "concluded")):
        make_run(owner, unit=unit, status=status)
    client = signed_in(admin)
    chosen = client.post("/runs/act/", {"action": "review", "all": "yes", "query": "unit=1"})
    assert chosen["Location"] == "/review/new/?unit=1"
    page = client.get("/review/new/?unit=1").content.decode()
    assert "3 runs, of which 2 have ended" in page
    made = client.post(
        "/review/new/?unit=1", {"name": "Ones", "reviewers_per_item": 2, "blind": "on", "only_ended": "on"}
    )
    queue = ReviewQueue.objects.get()
    assert made["Location"] == f"/review/{queue.pk}/"
    assert (queue.name, queue.filters, queue.reviewers_per_item, queue.blind) == ("Ones", "unit=1", 2, True)
    assert queue.items.count() == 2
    assert AuditEntry.objects.filter(verb="queue.created", row_pk=queue.pk).exists()


def test_ticked_runs_are_queued(admin, owner):
    run, _ = make_run(owner, status="concluded"), make_run(owner, status="concluded")
    client = signed_in(admin)
    address = client.post("/runs/act/", {"action": "review", "run": [run.pk]})["Location"]
    client.post(address, {"name": "One", "reviewers_per_item": 1, "only_ended": "on"})
    assert list(ReviewQueue.objects.get().items.values_list("run", flat=True)) == [run.pk]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": ""}, "This field is required"),
        ({"reviewers_per_item": 10}, "less than or equal to 9"),
        ({"reviewers_per_item": 3, "reviewers": "one"}, "Name at least 3 reviewers, or none"),
        ({"only_ended": "on"}, "No run is chosen"),
    ],
)
def test_a_queue_that_makes_no_sense_is_refused_with_words(admin, owner, fields, words):
    make_run(owner)
    if fields.get("reviewers"):
        fields = fields | {"reviewers": [admin.pk]}
    response = signed_in(admin).post("/review/new/", {"name": "q", "reviewers_per_item": 1} | fields)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not ReviewQueue.objects.exists()


def test_who_is_no_admin_queues_runs_of_their_own_alone_and_closes_no_queue_of_others(first, owner):
    client = signed_in(first)
    queue, mine = queue_of(owner), make_run(first, status="concluded")
    assert client.post(f"/review/{queue.pk}/close/").status_code == 403
    assert "1 run, of which 1 has ended. 2 runs of others left out" in client.get("/review/new/").content.decode()
    client.post("/review/new/", {"name": "Mine", "reviewers_per_item": 1, "only_ended": "on"})
    own = ReviewQueue.objects.get(name="Mine")
    assert list(own.items.values_list("run", flat=True)) == [mine.pk]
    assert client.post(f"/review/{own.pk}/close/").status_code == 302
    own.refresh_from_db()
    assert own.closed
    assert not ReviewQueue.objects.get(pk=queue.pk).closed


def test_a_viewer_makes_and_closes_no_queue(teammate, owner):
    client, queue = signed_in(teammate), queue_of(owner)
    assert client.get("/review/new/").status_code == 403
    assert client.post(f"/review/{queue.pk}/close/").status_code == 403
    assert "Queue for review" not in client.get("/runs/").content.decode()


def test_an_admin_closes_a_queue_for_good(admin, owner):
    queue = queue_of(owner)
    signed_in(admin).post(f"/review/{queue.pk}/close/")
    queue.refresh_from_db()
    assert queue.closed
    assert AuditEntry.objects.filter(verb="queue.closed").count() == 1


# --- reviewing ---


def test_from_the_next_item_to_a_submission_and_the_one_after(first, owner):
    queue, client = queue_of(owner), signed_in(first)
    address = client.get(f"/review/{queue.pk}/next/")["Location"]
    assert address == f"/review/{queue.pk}/items/1/"
    page = client.get(address).content.decode()
    assert "Run number 0?" in page
    assert "Look at &lt;i&gt;confounds&lt;/i&gt;." in page
    saved = send(client, f"{address}save/", note=SECRET).json()
    assert (saved["version"], saved["fields"]["note"], saved["held"]) == (2, SECRET, True)
    assert "too much&lt;/b&gt;" in client.get(address).content.decode()
    ahead = client.get(f"{address}ahead/")
    assert ahead["X-Address"] == f"/review/{queue.pk}/items/2/"
    assert Review.objects.count() == 1, "what is only loaded beforehand is not reserved"
    done = send(client, f"{address}submit/", **FULL_FORM, version=2, next=2).json()
    assert (done["problem"], done["next"]) == ("", {"position": 2, "version": 1})
    assert Review.objects.get(item__position=1).state == ReviewState.SUBMITTED
    assert AuditEntry.objects.filter(verb="review.submitted").count() == 1
    last = send(client, f"/review/{queue.pk}/items/2/submit/", **FULL_FORM).json()
    assert last["next"] is None
    assert last["words"] == "Every item of this queue has been reviewed."


@pytest.mark.parametrize("conclusion", [{}, {"labels": ["<b>red</b>"]}, {"bias": "More in snow."}])
def test_a_conclusion_may_lack_any_of_its_parts(first, owner, conclusion):
    queue = queue_of(owner, runs=1)
    Run.objects.update(conclusion=conclusion)
    page = signed_in(first).get(f"/review/{queue.pk}/items/1/").content.decode()
    words = conclusion.get("bias") or ("&lt;b&gt;red&lt;/b&gt;" if conclusion else "This run ended without one.")
    assert words in page


def test_without_scripts_the_same(first, owner):
    queue, client = queue_of(owner, runs=1), signed_in(first)
    address = client.get(f"/review/{queue.pk}/next/")["Location"]
    response = client.post(f"{address}submit/", {"version": 1, "seq": 0, "supported": "4"})
    assert response["Location"] == address
    assert "Still to be filled in: Specific, Complete" in said(response)[0]
    response = client.post(f"{address}submit/", FULL_FORM | {"version": 2, "seq": 0})
    assert response["Location"] == f"/review/{queue.pk}/"


def test_what_was_typed_in_a_second_tab_is_shown_again_beside_what_is_kept(first, owner):
    queue, client = queue_of(owner, runs=1), signed_in(first)
    address = client.get(f"/review/{queue.pk}/next/")["Location"]
    send(client, f"{address}save/", supported="5", note="from the left tab")
    told = send(client, f"{address}save/", note="from the right tab")
    assert told.status_code == 409
    assert (told.json()["problem"], told.json()["fields"]["note"]) == ("version", "from the left tab")
    page = client.post(f"{address}save/", {"version": 1, "note": "from the right tab"})
    text = page.content.decode()
    assert page.status_code == 409
    assert "from the right tab</textarea>" in text
    assert "Note from the left tab" in text
    assert 'name="version" value="2"' in text, "so that saving again is a choice"


def test_a_run_that_went_on_is_told_with_what_is_new(first, owner):
    run = fill(owner).run
    queue = actions.make_queue(Actor(owner), Run.objects.filter(pk=run.pk), ReviewQueue(name="q"))
    client = signed_in(first)
    address = client.get(f"/review/{queue.pk}/next/")["Location"]
    seen = run.last_seq
    transcript.append(run.pk, "reply", builders.replied(2))
    assert send(client, f"{address}hold/").json()["seq"] == seen + 1
    told = send(client, f"{address}submit/", **FULL_FORM, seq=seen).json()
    assert told["problem"] == "run"
    assert [(each["seq"], each["words"]) for each in told["news"]] == [(seen + 1, "a reply of the agent")]
    assert f"#{seen + 1} a reply of the agent" in client.get(address).content.decode()
    assert send(client, f"{address}submit/", **FULL_FORM, version=2, seq=told["seq"]).json()["problem"] == ""


def test_an_item_is_declined_with_a_reason_and_goes_to_another(first, second, owner):
    queue, client = queue_of(owner, runs=1), signed_in(first)
    address = client.get(f"/review/{queue.pk}/next/")["Location"]
    client.post(f"{address}decline/", {"reason": "My own <i>run</i>."})
    for user, told in ((first, True), (owner, True), (second, False)):
        page = signed_in(user).get(f"/review/{queue.pk}/").content.decode()
        assert ("declined: My own &lt;i&gt;run&lt;/i&gt;." in page) is told, "a reason may tell an opinion"
    assert client.get(f"/review/{queue.pk}/next/")["Location"] == f"/review/{queue.pk}/"
    assert signed_in(second).get(f"/review/{queue.pk}/next/")["Location"] == address
    assert AuditEntry.objects.filter(verb="review.declined").count() == 1


def test_a_submission_is_undone_and_that_is_recorded(first, owner):
    queue, client = queue_of(owner, runs=1), signed_in(first)
    address = client.get(f"/review/{queue.pk}/next/")["Location"]
    send(client, f"{address}submit/", **FULL_FORM)
    assert "Undo" in client.get(address).content.decode()
    assert client.post(f"/review/{queue.pk}/undo/")["Location"] == address
    assert Review.objects.get().state == ReviewState.DRAFT
    assert AuditEntry.objects.filter(verb="review.withdrawn").count() == 1
    assert "no submission of yours" in said(client.post(f"/review/{queue.pk}/undo/"))[-1]


def test_a_sign_of_life_reserves_nothing_new(first, owner):
    queue = queue_of(owner)
    assert send(signed_in(first), f"/review/{queue.pk}/items/1/hold/").json()["held"] is False
    assert not Review.objects.exists()


def test_this_very_item_is_taken_if_it_is_free(first, second, owner):
    queue, address = queue_of(owner), "/review/{}/items/2/"
    address = address.format(queue.pk)
    assert "Review this item" in signed_in(first).get(address).content.decode()
    signed_in(first).post(f"{address}take/")
    assert Review.objects.get().item.position == 2
    refused = signed_in(second).post(f"{address}take/")
    assert "Other reviewers have reserved this item" in said(refused)[0]


@pytest.mark.parametrize("path", ["save", "submit", "decline"])
def test_nothing_is_written_on_an_item_that_one_has_not_taken(first, owner, path):
    queue = queue_of(owner)
    told = send(signed_in(first), f"/review/{queue.pk}/items/1/{path}/", **FULL_FORM, reason="no")
    assert (told.status_code, told.json()["problem"]) == (409, "over")


# --- what is hidden and shown ---


def reviewed(queue: ReviewQueue, user: User, **fields: Any) -> None:
    client = signed_in(user)
    address = client.get(f"/review/{queue.pk}/next/")["Location"]
    assert send(client, f"{address}submit/", **(FULL_FORM | fields)).json()["problem"] == ""


@pytest.mark.parametrize("role", ["VIEWER", "RESEARCHER", "REVIEWER", "ADMIN"])
def test_an_opinion_is_hidden_at_every_address_until_it_may_be_seen(first, owner, role):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    reviewed(queue, first, note=SECRET, corrected_label="SECRETLABEL")
    client = signed_in(member("curious", role))
    addresses = [f"/review/{queue.pk}/", f"/review/{queue.pk}/items/1/", f"/review/{queue.pk}/items/1/line/"]
    for address in [*addresses, "/review/", "/search/?q=SECRETLABEL", f"/runs/{queue.items.get().run_id}/"]:
        text = client.get(address).content.decode()
        assert "too much" not in text
        assert "SECRETLABEL</" not in text
        assert "verdict reject" not in text
    assert "1 review hidden" in client.get(addresses[0]).content.decode()


def test_all_opinions_stand_side_by_side_once_an_item_is_complete(first, second, owner, teammate):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    reviewed(queue, first, note=SECRET)
    reviewed(queue, second, verdict="accept", supported="1")
    text = signed_in(teammate).get(f"/review/{queue.pk}/").content.decode()
    assert "the label says &lt;b&gt;too much&lt;/b&gt;" in text
    assert 'class="verdict reject"' in text
    assert 'class="verdict accept"' in text
    assert 'class="disagreement"' in text


def test_the_rail_and_the_overview_tell_what_waits(first, owner, teammate):
    queue_of(owner, runs=3)
    page = signed_in(first).get("/").content.decode()
    assert re.search(r'id="count-review"\s*>3</span>', page)
    assert "3 of 3 to review" in page
    assert "3 to review" not in signed_in(teammate).get("/").content.decode()


@pytest.mark.parametrize("path", ["/review/", "/review/{}/", "/review/{}/items/1/", "/review/{}/items/1/line/"])
def test_a_page_asks_as_often_however_much_there_is(first, owner, path, django_assert_max_num_queries):
    few, many = (queue_of(owner, runs=runs, reviewers_per_item=2) for runs in (1, 30))
    for name in ("third", "fourth"):
        for queue in (few, many):
            reviewed(queue, User.objects.filter(username=name).first() or member(name, "REVIEWER"))
    client = signed_in(first)
    counts = []
    for queue in (few, many):
        with django_assert_max_num_queries(60) as asked:
            assert client.get(path.format(queue.pk)).status_code == 200
        counts.append(len(asked))
    assert counts[1] <= counts[0] + 2, "no query of an item's own"


@pytest.mark.parametrize("path", ["/review/999/", "/review/999/next/", "/review/{}/items/99/", "/review/{}/items/0/"])
def test_what_there_is_not_is_not_found(first, owner, path):
    assert signed_in(first).get(path.format(queue_of(owner).pk)).status_code == 404


def test_an_empty_list_says_what_will_stand_there(first, admin):
    assert "No queue yet" in signed_in(first).get("/review/").content.decode()
    assert "Choose concluded runs" in signed_in(admin).get("/review/").content.decode()


# --- the API ---


def test_a_script_reviews_from_the_next_item_to_the_opinions(first, second, owner):
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    reviewed(queue, second, note=SECRET)
    script, here = Script(first), f"/queues/{queue.pk}"
    assert script.get(here).json()["items"] == 1
    item = script.post(f"{here}/next").json()
    review = f"{here}/items/{item['number']}/review"
    assert script.get(f"{here}/items/1/reviews").json() == []
    etag = script.get(review)["ETag"]
    fields = dict.fromkeys(rubric.NAMES, 3) | {"verdict": "accept"}
    assert script.send("PUT", review, fields).status_code == 428
    saved = script.send("PUT", review, fields, If_Match=etag)
    assert (saved.status_code, saved.json()["verdict"]) == (200, "accept")
    assert script.send("PUT", review, fields, If_Match=etag).status_code == 412, "it has changed since"
    body, etag = {"run_seq": item["run_seq"]}, script.get(review)["ETag"]
    assert saved["ETag"] == etag
    assert script.post(f"{review}/submit", body, If_Match=etag).json()["state"] == "submitted"
    assert SECRET in [each["note"] for each in script.get(f"{here}/items/1/reviews").json()]
    again = script.post(f"{review}/submit", body, If_Match=script.get(review)["ETag"])
    assert again.status_code == 409
    assert "That one stands." in again.json()["detail"]


def test_a_script_is_told_what_is_missing_and_when_nothing_waits(first, owner):
    queue = queue_of(owner, runs=1)
    script, review = Script(first), f"/queues/{queue.pk}/items/1/review"
    assert script.get(review).status_code == 404
    script.post(f"/queues/{queue.pk}/next")
    told = script.post(f"{review}/submit", {"run_seq": 0}, If_Match="*")
    assert (told.status_code, "Verdict" in told.json()["detail"]) == (422, True)
    actions.close_queue(Actor(queue.owner), queue)
    assert script.post(f"/queues/{queue.pk}/next").status_code == 409
