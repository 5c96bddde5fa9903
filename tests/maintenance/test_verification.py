"""Verifying finds what is wrong, each with its place, and nothing in what real runs left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F
from PIL import Image as Pillow

from experiments.core import transcript
from experiments.maintenance import image_files, replaying
from experiments.maintenance.findings import Finding
from experiments.maintenance.verification import find_problems, request_thumbnails
from experiments.models import Event, Experiment, Hypothesis, Image, Label, Observation, Run
from workers.jobs.images import key_of_file
from workers.lab.imaging import encode_png
from workers.record.events import Blocked, LimitsChanged, Resumed
from workers.record.limits import Limits
from workers.record.statuses import Status

pytestmark = pytest.mark.django_db(transaction=True)
Played = Callable[[], Run]


def look(**options: Any) -> list[Finding]:
    return find_problems(key_of_file, **options)


def shown(found: list[Finding]) -> list[tuple[str, int | None, str]]:
    return [(each.kind, each.seq, each.reason) for each in found]


def file_of(store: Path, image: Image) -> Path:
    return store / Image.path_of(image.key)


def test_nothing_is_wrong_with_what_the_agent_left(played: Played) -> None:
    run = played()
    assert (run.status, run.observation_count) == (Status.CONCLUDED, 3)
    assert Image.objects.count() >= 3
    assert look() == []


def test_a_run_that_was_steered_resumed_and_never_begun_is_right_too(played: Played) -> None:
    run = played()
    stopped = Run.objects.create(owner=run.owner, question="?", task="describe", model="tiny", layer="patches", unit=0)
    transcript.append(stopped.pk, "limits", LimitsChanged(0, "owner", "more", Limits(rounds=3)))
    transcript.append(stopped.pk, "blocked", Blocked(1, "No key."))
    assert look() == []
    transcript.append(stopped.pk, "resumed", Resumed(1, "owner"))
    Run.objects.filter(pk=stopped.pk).update(status=Status.RUNNING)  # as a worker claims it
    assert look() == []


@pytest.mark.parametrize(
    ("rows", "change", "said"),
    [
        (Run, {"cost": 7.0}, "cost of the run is 7.0; by its events it is 1.0."),
        (Run, {"rounds": 9}, "rounds of the run is 9; by its events it is 2."),
        (Run, {"status": "failed"}, "status of the run is 'failed'; by its events it is 'concluded'."),
        (Run, {"ended": None}, "the run has no time of its end, unlike its events."),
        (Experiment, {"output": "other"}, "output of experiment 1 is 'other'; by its events it is"),
        (Observation, {"activation": 3e9}, "activation of image 1 of experiment 1 is 3000000000.0; by"),
        (Hypothesis, {"text": "other"}, "text of hypothesis 1 of round 1 is 'other'; by its events it is"),
        (Label, {"text": "blue"}, "labels of the run is ['blue']; by its events it is ['red squares']."),
    ],
)
def test_a_row_that_does_not_follow_from_the_events_is_named(
    played: Played, rows: Any, change: dict[str, Any], said: str
) -> None:
    run = played()
    rows.objects.update(**change)
    found = find_problems(None)
    assert {(each.kind, each.run) for each in found} == {("rows", run.pk)}
    assert found[0].reason.startswith(said)
    assert found[0].seq is not None
    assert found[0].remedy == replaying.RESTORE


def test_rows_that_are_missing_and_rows_too_many_are_named(played: Played) -> None:
    run = played()
    result = run.events.get(kind="result").seq
    Observation.objects.filter(position=3).delete()
    Hypothesis.objects.create(run=run, round=9, number=1, text="from nowhere")
    assert shown(look()) == [
        ("rows", result, "image 3 of experiment 1 is missing."),
        ("rows", None, "hypothesis 1 of round 9 follows from no event."),
    ]


def test_a_gap_an_end_that_is_missing_and_an_unreadable_event_are_named(played: Played) -> None:
    gap, short, garbled = played(), played(), played()
    Event.objects.filter(run=gap, seq=2).delete()
    Event.objects.filter(run=short, seq=short.last_seq).delete()
    Event.objects.filter(run=garbled, kind="reply", payload__round=1).update(payload={"round": "one"})
    found = look()
    assert [(each.run, *place) for each, place in zip(found, shown(found), strict=True)] == [
        (gap.pk, "events", 2, "event 2 is missing; the next is 3."),
        (
            short.pk,
            "events",
            short.last_seq - 1,
            f"the run counts {short.last_seq} events, and {short.last_seq - 1} are there.",
        ),
        (garbled.pk, "events", 2, "its payload is none of the kind 'reply'."),
    ]


def test_an_event_out_of_turn_is_named(played: Played) -> None:
    run = played()
    begun = run.events.get(kind="experiment")
    Event.objects.filter(pk=begun.pk).update(payload={**begun.payload, "number": 5})
    (found,) = look()
    assert (found.kind, found.seq) == ("events", begun.seq + 1)
    assert "there is no experiment 1" in found.reason


def test_images_that_are_gone_broken_or_others_are_named(played: Played, store: Path) -> None:
    played()
    gone, broken, other, *_ = Image.objects.order_by("key")
    file_of(store, gone).unlink()
    file_of(store, broken).write_bytes(file_of(store, broken).read_bytes()[:40])
    file_of(store, other).write_bytes(encode_png(Pillow.new("RGB", (3, 3), "red")))
    found = {each.image: each.reason for each in look()}
    assert found.keys() == {gone.key, broken.key, other.key}
    assert found[gone.key] == "its file is gone."
    assert found[broken.key].startswith("its file holds no image (")
    assert found[other.key].startswith("its file holds other pixels, those of ")
    assert find_problems(None) == []


def test_an_image_that_an_event_names_and_nobody_knows_is_named(played: Played) -> None:
    run = played()
    result = run.events.get(kind="result")
    lost = "f" * 64
    text = json.dumps(result.payload)
    key = result.content.observations[0].image
    Event.objects.filter(pk=result.pk).update(payload=json.loads(text.replace(key, lost)))
    found = [each for each in look() if each.kind == "image"]
    assert [(each.seq, each.image) for each in found] == [(result.seq, lost)]


def test_a_missing_thumbnail_is_named_and_drawn_anew(played: Played, store: Path) -> None:
    played()
    image = Image.objects.order_by("key").first()
    (store / Image.thumbnail_of(image.key, 160)).unlink()
    found = look()
    assert shown(found) == [("thumbnail", None, "its thumbnail of 160 pixels is gone.")]
    assert request_thumbnails(found) == 1
    assert list(Image.objects.filter(has_thumbnails=False)) == [image]
    assert look() == []  # pages know that there is none


def test_a_sample_is_of_that_size_and_everything_where_that_is_more(played: Played) -> None:
    played()
    looked: list[bytes] = []

    def key_of(data: bytes) -> str:
        looked.append(data)
        return key_of_file(data)

    assert find_problems(key_of, sample=2) == []
    assert len(set(looked)) == 2
    looked.clear()
    assert find_problems(key_of, sample=1000) == []
    assert len(set(looked)) == len(looked) == Image.objects.count()


def test_a_run_that_goes_on_meanwhile_is_read_again(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    run = played()
    compare, moved = replaying._Replay.compare, []

    def compare_late(replay: Any) -> list[Finding]:
        """As if an event had come in between the reading of the run and that of its events."""
        if not moved:
            moved.append(replay.row.pk)
            replay.row.last_seq -= 1
        return compare(replay)

    monkeypatch.setattr(replaying._Replay, "compare", compare_late)
    assert find_problems(None) == []
    assert moved == [run.pk]
    Run.objects.update(rounds=F("rounds") + 1)
    assert len(find_problems(None)) == 1


def test_files_of_nobody_are_counted(played: Played, store: Path) -> None:
    assert image_files.count_orphans(lambda *_: None).files == 0
    played()
    stray = store / "aa" / f"{'b' * 62}.png"
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"half")
    assert image_files.count_orphans(lambda *_: None).files == 1
    assert look() == []


def test_the_command_tells_what_is_wrong_and_by_its_exit_status(played: Played, capsys: Any) -> None:
    run = played()
    call_command("verify", "--sample", "2")
    assert capsys.readouterr().out.startswith("All is well: 1 runs, ")
    Run.objects.update(rounds=9)
    with pytest.raises(CommandError, match="1 things are wrong") as stopped:
        call_command("verify", "--no-images", "--json")
    assert stopped.value.returncode == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["run"], found["seq"], found["kind"]) == (run.pk, run.last_seq, "rows")
    with pytest.raises(CommandError):
        call_command("verify", "--no-images")
    assert f"run {run.pk}, event {run.last_seq}: rounds of the run is 9" in capsys.readouterr().out
