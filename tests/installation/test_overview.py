"""The Overview: what runs, what waits, what was concluded, how the machinery is; and how an open one stays true."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core import notify, transcript, worker_status
from experiments.installation import dashboard
from experiments.models import Backbone, Image, Run, VisionModelRow
from tests.support.builders import experiment, make_run, replied, started
from workers.record.events import Blocked, Ended, ExperimentEnded
from workers.record.experiments import LogEntry, Observation
from workers.record.replies import Conclusion

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
REPORT = {
    "name": "lab:17",
    "device": "cuda:0",
    "places": [{"name": "toybox", "bytes": 5, "used": 1.0, "busy": False}],
    "jobs": [],
    "memory": {"of": "H<100>", "used": 5, "total": 9},
}


@pytest.fixture(autouse=True)
def with_redis(redis_url: str) -> None:
    """Every test here has an empty Redis."""


def page(client: Client) -> str:
    return client.get("/").content.decode()


def conclude(run: Run, *labels: str, kind: str = "concluded") -> None:
    transcript.append(run.pk, kind, Ended("", Conclusion("Words.", labels)))


def observe(run: Run, *images: tuple[float, str]) -> None:
    """Log images, each an activation and the letter of its key, in one experiment."""
    for letter in {letter for _, letter in images}:
        known = {"width": 8, "height": 8, "origin": "generated"}
        Image.objects.get_or_create(key=letter * 64, defaults=known)
    logged = tuple(Observation(f"{letter} <b>", activation, letter * 64) for activation, letter in images)
    transcript.append(run.pk, "experiment", experiment())
    ended = ExperimentEnded(1, 1, "ok", (LogEntry(logged, ""),))
    transcript.append(run.pk, "result", ended)


def test_an_empty_installation_says_what_will_stand_here_and_offers_the_one_action(as_owner: Client) -> None:
    text = page(as_owner)
    assert "No runs yet" in text
    assert "Start the first run" in text
    assert "Recent conclusions" not in text
    assert "No worker is here" in text


def test_a_viewer_of_an_empty_installation_is_offered_nothing_they_may_not_do(client: Client, teammate: User) -> None:
    client.force_login(teammate)
    text = page(client)
    assert "Your role is Viewer" in text
    assert "Start the first run" not in text


def test_it_shows_what_runs_with_the_latest_words_and_progress(as_owner: Client, owner: User) -> None:
    run = make_run(owner, question="What <i>is</i> it?", status="running", started=timezone.now())
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "reply", replied(1, prose="**Red** balls come first."))
    text = page(as_owner)
    for words in ("What &lt;i&gt;is&lt;/i&gt; it?", "Red balls come first.", "<b>1</b> of 25", "Running"):
        assert words in text
    notify.draft(run.pk, "[HYPOTHESIS LIST]\nRound <things>.\n```python\nsystem.neuron([])", 0)
    notify.progress(run.pk, "Drawing", 3, 8)
    text = page(as_owner)
    assert "Round &lt;things&gt;." in text
    assert "system.neuron" not in text
    assert re.search(r"Drawing <span class=\"muted\">3 of 8", text)


def test_long_words_under_way_show_their_end_and_finished_ones_their_beginning() -> None:
    text = " ".join(f"word{n}" for n in range(200))
    assert dashboard.ending(text).endswith("word199")
    assert dashboard.ending(text).startswith("…word")
    assert dashboard.shorten(text).startswith("word0 ")
    assert dashboard.shorten("short") == dashboard.ending("short") == "short"


def test_what_waits_for_a_person_stands_with_its_reason_and_a_button(as_owner: Client, owner: User) -> None:
    run = make_run(owner, status="waiting", reason="The key is missing. Set OPENAI_API_KEY.")
    text = page(as_owner)
    assert "The key is missing." in text
    assert f'formaction="/runs/{run.pk}/try-again/"' in text
    assert re.search(r'id="count-overview"\s*>1 waits</span>', text)


def test_a_viewer_sees_what_waits_and_no_button(client: Client, teammate: User, owner: User) -> None:
    make_run(owner, status="waiting", reason="The key is missing.")
    client.force_login(teammate)
    text = page(client)
    assert "The key is missing." in text
    assert "try-again" not in text


def test_conclusions_stand_with_labels_and_their_strongest_images_each_once(as_owner: Client, owner: User) -> None:
    run = make_run(owner)
    observe(run, (1.0, "a"), (9.0, "b"), (8.5, "b"), (3.0, "c"), (7.0, "d"), (6.0, "e"), (5.0, "f"))
    observe(other := make_run(owner), (99.0, "a"))
    conclude(run, "<u>red</u> balls")
    conclude(other, "blue")
    text = page(as_owner)
    assert "&lt;u&gt;red&lt;/u&gt; balls" in text
    latest, earlier = text.split('id="area-latest"')[1].split('id="area-recent"')
    assert "blue" in latest
    assert re.findall(r'alt="(.)', latest) == ["a"]
    assert re.findall(r'<img src="[^"]+" alt="(.)', earlier.split("</section>")[0]) == ["b", "d", "e", "f"]


def test_the_newest_answer_is_a_card_and_a_run_without_one_is_a_row(as_owner: Client, owner: User) -> None:
    runs = [make_run(owner, question=f"Question {n}") for n in range(3)]
    observe(runs[1], (9.0, "b"), (1.0, "c"))
    conclude(runs[0], "old")
    conclude(runs[1], "red", "<i>round</i>")
    transcript.append(runs[2].pk, "limit_reached", Ended("Out of rounds."))
    latest, earlier = page(as_owner).split('id="area-latest"')[1].split('id="area-recent"')
    assert "Question 1" in latest
    assert "&lt;i&gt;round&lt;/i&gt;" in latest
    assert f'href="/runs/{runs[1].pk}/review/"' in latest
    assert [f"Question {n}" in earlier for n in range(3)] == [True, False, True]


def test_an_open_page_is_not_sent_a_card_that_it_has(as_owner: Client, owner: User) -> None:
    conclude(make_run(owner), "red")
    known = [each for each in seen(page(as_owner)) if each.startswith("latest")]
    assert 'id="area-latest"' not in as_owner.get("/", {"seen": known}, headers=HTMX).content.decode()
    conclude(make_run(owner), "blue")
    assert "blue" in as_owner.get("/", {"seen": known}, headers=HTMX).content.decode().split('id="area-latest"')[1]


def test_what_a_limit_forced_counts_and_what_was_stopped_does_not(as_owner: Client, owner: User) -> None:
    runs = [make_run(owner, question=f"Question {n}") for n in range(3)]
    conclude(runs[0], "red", kind="limit_reached")
    conclude(runs[1], kind="cancelled")
    conclude(runs[2], kind="failed")
    text = page(as_owner)
    assert "Question 0" in text
    assert "limit reached" in text
    assert "Question 1" not in text
    assert "1 run failed" in text
    Run.objects.update(ended=timezone.now() - timedelta(days=8))
    assert "failed" not in page(as_owner).split('id="area-waiting"')[1].split("</section>")[0]


def test_it_says_how_workers_and_models_are(as_owner: Client, owner: User) -> None:
    worker_status.publish_status("lab:17", REPORT)
    VisionModelRow.objects.create(name="toybox", label="toybox-net")
    Backbone.objects.create(key="openai", label="A <model>", available=False)
    text = page(as_owner)
    for words in ("lab:17", "Ready", "H&lt;100&gt;", "Loaded: toybox", "toybox-net", "1 other is not installed"):
        assert words in text


def test_without_redis_the_rest_is_there(as_owner: Client, owner: User, settings: Any) -> None:
    make_run(owner, question="What then?", status="running")
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    notify.redis.cache_clear()
    text = page(as_owner)
    assert "Redis is away" in text
    assert "What then?" in text


# --- an open page ------------------------------------------------------------------------------------------


def seen(text: str) -> list[str]:
    return re.findall(r'name="seen" value="([^"]+)"', text)


def test_an_open_page_is_sent_only_what_has_changed(as_owner: Client, owner: User) -> None:
    run = make_run(owner, question="What then?")
    known = seen(page(as_owner))
    assert [each.partition(":")[0] for each in known] == ["now", "latest", "recent", "waiting", "workers"]
    assert as_owner.get("/", {"seen": known}, headers=HTMX).status_code == 204
    transcript.append(run.pk, "blocked", Blocked(1, "No key."))
    text = as_owner.get("/", {"seen": known}, headers=HTMX).content.decode()
    assert re.findall(r'id="area-(\w+)" hx-swap-oob="true"', text) == ["now", "waiting"]
    assert "No key." in text
    assert "<nav" not in text


def test_prints_that_mean_nothing_are_answered_with_everything(as_owner: Client) -> None:
    text = as_owner.get("/", {"seen": ["", "now:<script>", "x" * 9000]}, headers=HTMX).content.decode()
    assert len(seen(text)) == 5
    assert "<script>" not in text


@pytest.mark.parametrize("count", [1, 12])
def test_an_overview_of_any_size_takes_the_same_number_of_queries(
    as_owner: Client, owner: User, django_assert_max_num_queries: Any, count: int
) -> None:
    for number in range(count):
        running = make_run(owner, status="running")
        transcript.append(running.pk, "reply", replied(1))
        make_run(owner, status="waiting", reason="No key.")
        done = make_run(owner)
        observe(done, (float(number), "a"))
        conclude(done, "red")
    with django_assert_max_num_queries(24 + dashboard.CONCLUDED):
        text = page(as_owner)
    assert text.count('class="card active-run"') == min(count, dashboard.MAX_RUNS)
    assert ("All 12" in text) == (count == 12)
