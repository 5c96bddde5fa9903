"""The pages of trials and their part of the API."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from experiments.core.actors import Actor
from experiments.models import AuditEntry, Label, Notification, PairwiseTrial
from experiments.pairwise import actions
from tests.support import trials
from tests.support.api_world import Script
from tests.support.people import member, signed_in
from tests.support.trials import AGENT, MILAN, SECRETS

pytestmark = pytest.mark.django_db


@pytest.fixture
def as_admin(db: None) -> Client:
    return signed_in(member("admin", "ADMIN"))


@pytest.fixture
def trial(owner: User) -> PairwiseTrial:
    trials.labelled(owner)
    return trials.trial(owner)


def test_an_admin_counts_and_makes_a_trial(as_admin: Client, owner: User) -> None:
    trials.labelled(owner)
    judge = member("judge", "REVIEWER")
    fields = {"name": "Mine", "source": [AGENT, MILAN], "model": "toybox", "q": "red", "most": "50"}
    counted = as_admin.get("/pairwise/new/", fields).content.decode()
    assert "<b>1</b> pair of labels" in counted
    assert not PairwiseTrial.objects.exists()
    assert as_admin.post("/pairwise/new/", fields).status_code == 302
    made = PairwiseTrial.objects.get()
    assert (made.name, made.query, made.pairs.count()) == ("Mine", "model=toybox&q=red", 1)
    assert AuditEntry.objects.filter(verb="trial.made").count() == 1
    assert "asks you to judge 1 pair of labels in “Mine”" in Notification.objects.get(user=judge).words


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"source": [AGENT]}, "Choose two sources or more"),
        ({"source": [AGENT, "import:nobody"]}, "is not one of the available choices"),
        ({"most": "0"}, "Pairs at most"),
        ({"known_answers": "many"}, "Attention check"),
        ({"name": ""}, "Name"),
        ({"layer": "none"}, "No unit has two different labels"),
    ],
)
def test_a_trial_that_cannot_be_is_not_made(as_admin: Client, owner: User, fields: dict, problem: str) -> None:
    trials.labelled(owner, 3)
    sent = {"name": "Mine", "source": [AGENT, MILAN]} | fields
    response = as_admin.post("/pairwise/new/", sent)
    assert response.status_code == 400
    assert problem in response.content.decode()
    assert not PairwiseTrial.objects.exists()


def test_without_two_sources_the_page_says_what_is_needed(as_admin: Client) -> None:
    assert "Labels of two sources are needed" in as_admin.get("/pairwise/new/").content.decode()


def test_pages_ask_the_database_as_often_for_many_as_for_few(
    trial: PairwiseTrial, owner: User, django_assert_num_queries
) -> None:
    reviewer = signed_in(member("reviewer", "REVIEWER"))
    addresses = ["/pairwise/", f"/pairwise/{trial.pk}/", f"/judging/trials/{trial.pk}/"]
    few = []
    for address in addresses:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            reviewer.get(address)
        few.append(len(asked))
    for seed in range(3):
        trials.trial(owner, seed=seed + 10)
    for name in ("one", "two", "three"):
        trials.judged(signed_in(member(name, "REVIEWER")), trial, AGENT)
    for address, count in zip(addresses, few, strict=True):
        with django_assert_num_queries(count):
            reviewer.get(address)


def test_markup_in_names_and_labels_is_text(as_admin: Client, owner: User) -> None:
    trials.labelled(owner, 3)
    Label.objects.filter(text="something red").update(text="<script>alert(1)</script>")
    made = trials.trial(owner, name="<b>bold</b>")
    for address in ("/pairwise/", f"/pairwise/{made.pk}/", f"/judging/trials/{made.pk}/"):
        page = as_admin.get(address).content.decode()
        assert "<b>bold" not in page
        assert "<script>alert" not in page


# --- the API ---


def test_a_script_judges_and_reads_results_once_the_trial_is_closed(trial: PairwiseTrial) -> None:
    script = Script(member("reviewer", "REVIEWER"))
    assert script.get("/trials").json()["items"][0]["pairs"] == 18
    address = f"/trials/{trial.pk}"
    desk = f"/judging/trials/{trial.pk}"
    shown = script.get(f"{desk}/next").json()
    assert not [secret for secret in SECRETS if secret in str(shown).lower()]
    while shown["item"]:
        sent = {"item": shown["item"]["id"], "answer": "first", "seconds": 1.5}
        response = script.post(f"{desk}/answers", sent)
        assert response.status_code == 201
        shown = response.json()
    assert (shown["judged"], script.get(address).json()["judged"]) == (18, 18)
    assert script.get(f"{address}/results").status_code == 409
    actions.close_trial(Actor(trial.owner), trial.pk)
    assert script.get(f"{desk}/next").json()["item"] is None
    assert script.post(f"{desk}/answers", sent).status_code == 409
    told = script.get(f"{address}/results").json()
    (judge,) = told["judges"]
    assert (judge["kind"], judge["judged"], judge["first"]["value"], judge["repeated"]["value"]) == (
        "person",
        18,
        1.0,
        0.0,
    )
    assert {(each["source"], each["over"]) for each in told["people"]} == {
        ("Any agent", "milan (imported)"),
        ("milan (imported)", "Any agent"),
    }


def test_an_open_trial_waits_on_the_overview_of_who_may_judge_it(
    trial: PairwiseTrial, redis_url: str, as_owner: Client
) -> None:
    reviewer, total = signed_in(member("reviewer", "REVIEWER")), trial.pairs.count()
    assert f"{total} of {total} pairs to judge" in reviewer.get("/").content.decode()
    assert "pairs to judge" not in as_owner.get("/").content.decode(), "a researcher judges nothing"
    trials.judged(reviewer, trial, AGENT)
    assert "pairs to judge" not in reviewer.get("/").content.decode()
    other = signed_in(member("other", "REVIEWER"))
    assert f"/judging/trials/{trial.pk}/" in other.get("/").content.decode()
    actions.close_trial(Actor(trial.owner), trial.pk)
    assert "pairs to judge" not in other.get("/").content.decode()
