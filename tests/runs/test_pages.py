"""The list of runs, and the pulse."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import transcript, worker_status
from experiments.models import Run, VisionModelRow
from tests.support.builders import make_run
from workers.record.events import Ended
from workers.record.replies import Conclusion

pytestmark = pytest.mark.django_db


def page(client: Client, query: str = "", **headers: str) -> str:
    return client.get(f"/runs/{query}", headers=headers).content.decode()


def test_an_empty_list_says_what_will_stand_there_and_offers_the_one_action(as_owner: Client) -> None:
    text = page(as_owner)
    assert "No runs yet" in text
    assert "Start the first run" in text


def test_it_shows_question_system_status_labels_and_owner(as_owner: Client, owner: User) -> None:
    run = make_run(owner, question="What excites it?")
    transcript.append(run.pk, "concluded", Ended("", Conclusion("Red.", ("red balls",))))
    text = page(as_owner)
    for words in (
        "What excites it?",
        "toybox / layer4 / unit 7",
        "Concluded",
        "red balls",
        "owner",
        "Scripted scientist</td>",
    ):
        assert words in text


def test_what_people_and_models_wrote_is_text_and_nothing_else(as_owner: Client, owner: User) -> None:
    run = make_run(owner, question="<script>alert(1)</script>")
    transcript.append(run.pk, "concluded", Ended("", Conclusion("", ("<img src=x onerror=alert(1)>",))))
    text = page(as_owner)
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_it_finds_runs_by_status_and_words(as_owner: Client, owner: User) -> None:
    make_run(owner, question="First question", unit=31)
    done = make_run(owner, question="Second question")
    transcript.append(done.pk, "concluded", Ended("", Conclusion("", ("purple snowmen",))))
    assert "Second question" not in page(as_owner, "?status=active")
    assert "First question" not in page(as_owner, "?status=concluded")
    assert "First question" not in page(as_owner, "?q=snowmen")
    assert "Second question" not in page(as_owner, "?q=31")
    assert "No run matches" in page(as_owner, "?q=unicorn&status=failed")


def test_it_shows_fifty_at_a_time_and_says_where_one_is(as_owner: Client, owner: User) -> None:
    Run.objects.bulk_create(
        Run(owner=owner, question=f"Question {n}", task="describe", model="toybox", layer="layer4", unit=1)
        for n in range(120)
    )
    first = page(as_owner)
    assert "1\N{EN DASH}50 of 120" in first
    assert first.count("<tr data-row>") == 50
    assert "101\N{EN DASH}120 of 120" in page(as_owner, "?page=3")
    assert "101\N{EN DASH}120 of 120" in page(as_owner, "?page=99")
    assert "1\N{EN DASH}50 of 120" in page(as_owner, "?page=x")


def test_a_list_of_any_length_takes_the_same_number_of_queries(
    as_owner: Client, owner: User, django_assert_max_num_queries: Any
) -> None:
    for _ in range(20):
        make_run(owner)
    with django_assert_max_num_queries(19):
        page(as_owner)


def test_htmx_gets_the_list_alone_which_asks_more_often_while_runs_are_alive(as_owner: Client, owner: User) -> None:
    run = make_run(owner)
    text = page(as_owner, **{"HX-Request": "true"})
    assert text.lstrip().startswith('<div id="run-list"')
    assert "every 3s" in text
    transcript.append(run.pk, "cancelled", Ended("Stopped."))
    assert "every 20s" in page(as_owner, **{"HX-Request": "true"})


def test_the_pulse_says_whether_a_worker_is_there(as_owner: Client, owner: User, redis_url: str) -> None:
    def pulse() -> str:
        return as_owner.get("/pulse/").content.decode()

    assert "No worker seen" in pulse()
    worker_status.publish_status("lab:17", {"name": "lab:17", "jobs": []})
    assert "loading models" in pulse()
    VisionModelRow.objects.create(name="toybox", revision="1")
    make_run(owner)
    text = pulse()
    assert "Worker ready · toybox" in text
    assert "1 live" in text
