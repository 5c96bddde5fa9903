"""Events are numbered without gaps, by whoever writes them, and rows keep in step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.contrib.auth.models import User
from django.db import connection
from PIL import Image as Pillow

from experiments.core import notify, transcript
from experiments.models import Event, Hypothesis, Label, Layer, Observation, Run, Unit, VisionModelRow
from tests.support.builders import experiment, make_run, replied, result, started
from workers.errors import LeaseLost
from workers.jobs.images import ImagesInDatabase
from workers.protocols import Provenance
from workers.record.events import Ended, Reminder, Retrying
from workers.record.replies import Conclusion
from workers.record.replies import Hypothesis as Claim

pytestmark = pytest.mark.usefixtures("redis_url")


@pytest.mark.django_db(transaction=True)
def test_it_numbers_events_without_gaps_when_many_threads_append(owner: User) -> None:
    run = make_run(owner)

    def append(_: int) -> None:
        transcript.append(run.pk, "reminder", Reminder(1, "format", ""))
        connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(append, range(40)))
    assert list(Event.objects.filter(run=run).values_list("seq", flat=True)) == list(range(1, 41))
    assert Run.objects.get().last_seq == 40


@pytest.mark.django_db(transaction=True)
def test_it_rings_only_after_commit_and_never_sends_the_data(owner: User) -> None:
    run = make_run(owner)
    layer = get_channel_layer()

    async def hear() -> dict[str, object]:
        channel = await layer.new_channel()
        await layer.group_add(notify.group(run.pk), channel)
        from asgiref.sync import sync_to_async

        await sync_to_async(transcript.append)(run.pk, "started", started())
        return await layer.receive(channel)

    heard = async_to_sync(hear)()
    assert heard.pop("bell")
    assert heard == {"type": "run.event", "run": run.pk, "seq": 1}


def test_it_refuses_a_writer_whose_fence_is_old(owner: User) -> None:
    run = make_run(owner, fence=3)
    with pytest.raises(LeaseLost, match="held by another worker"):
        transcript.append(run.pk, "started", started(), fence=2)
    assert not run.events.exists()


def test_it_takes_nothing_after_the_end(owner: User) -> None:
    run = make_run(owner)
    transcript.append(run.pk, "cancelled", Ended("Stopped."))
    with pytest.raises(transcript.RunEnded):
        transcript.append(run.pk, "reply", replied())
    assert Run.objects.get().status == "cancelled"


def test_it_reads_back_what_follows_a_number(owner: User) -> None:
    run = make_run(owner)
    for payload in (started(), started(), started()):
        transcript.append(run.pk, "started", payload)
    assert [event.seq for event in transcript.list_events(run.pk, 1)] == [2, 3]
    assert [event.seq for event in transcript.list_events(run.pk, 0, limit=2)] == [1, 2]


def test_a_reply_counts_its_usage_and_keeps_its_hypotheses(owner: User) -> None:
    run = make_run(owner)
    claims = (Claim(1, "red balls", "supported", "9 of 9"), Claim(2, "anything red"))
    transcript.append(run.pk, "reply", replied(hypotheses=claims), seconds=2.5)
    run.refresh_from_db()
    assert (run.rounds, run.prompt_tokens, run.completion_tokens, run.cost, run.seconds) == (1, 10, 5, 0.25, 2.5)
    assert list(Hypothesis.objects.values_list("number", "text", "status")) == [
        (1, "red balls", "supported"),
        (2, "anything red", "open"),
    ]


def test_a_result_keeps_its_observations_and_its_state(owner: User) -> None:
    run = make_run(owner)
    images = ImagesInDatabase()
    keys = tuple(images.remember(Pillow.new("RGB", (8, 8), c), Provenance("generated")) for c in ("red", "blue"))
    images.flush()
    transcript.append(run.pk, "experiment", experiment())
    transcript.append(run.pk, "result", result(1, keys, exemplar_mean=1.5), state=b"kept")
    run.refresh_from_db()
    assert list(Observation.objects.values_list("position", "title", "activation")) == [
        (1, "image 1", 1.0),
        (2, "image 2", 2.0),
    ]
    assert (run.observation_count, run.exemplar_mean, run.best_activation) == (2, 1.5, 2.0)
    row = run.experiments.get()
    assert (row.status, bytes(row.state)) == ("ok", b"kept")


def test_a_conclusion_ends_the_run_and_labels_the_unit(owner: User) -> None:
    run = make_run(owner, lease_worker="somebody")
    model = VisionModelRow.objects.create(name="toybox", revision="1")
    layer = Layer.objects.create(model=model, position=0, name="layer4", path="layer4", kind="conv", units=9)
    unit = Unit.objects.create(layer=layer, number=7)
    end = Ended("", Conclusion("Red things.", ("red balls", "red cars")))
    transcript.append(run.pk, "concluded", end)
    run.refresh_from_db()
    assert (run.status, run.lease_worker, run.labels) == ("concluded", "", ["red balls", "red cars"])
    assert run.ended is not None
    assert [label.text for label in unit.labels.all()] == ["red balls", "red cars"]
    assert Label.objects.filter(run=run, source="run").count() == 2


def test_it_keeps_what_a_program_printed_even_where_no_database_takes_it(owner: User) -> None:
    run = make_run(owner)
    event = transcript.append(run.pk, "retrying", Retrying(1, 1, "a\x00b \ud83d c"))
    assert transcript.list_events(run.pk, 0) == [event]
    assert Event.objects.get().payload["what"] == "a\ufffdb ? c"
