"""A long run comes in without locking others out, and its rows are those of the same run written event by event."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, models, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from experiments.core import transcript
from experiments.core.transcript import ImportedEvent
from experiments.exchange import import_bundle, validate_bundle
from experiments.exchange.import_bundle import ImportSource
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import (
    Event,
    Experiment,
    Hypothesis,
    Label,
    Layer,
    Observation,
    Run,
    RunSummary,
    SearchText,
    Tag,
    Unit,
    VisionModelRow,
)
from experiments.search.finding import SearchScope, find
from experiments.search.runs import runs_matching
from tests.support.builders import experiment, make_run, replied, result, started
from tests.support.bundles import brought, bundled, picture
from tests.support.long_run import long_run
from workers.jobs import exchange
from workers.record.decoding import decode
from workers.record.events import Blocked, Ended, HandedOver, LimitsChanged, Payload, Reminder, Resumed
from workers.record.experiments import LogEntry
from workers.record.experiments import Observation as Logged
from workers.record.limits import Limits, Usage
from workers.record.replies import Conclusion
from workers.record.replies import Hypothesis as Claim

pytestmark = pytest.mark.usefixtures("redis_url")

OWN = {
    "id",
    "run",
    "run_id",
    "time",
    "experiment_id",
    "created",
    "started",
    "ended",
    "due",
    "run_queue",
    "run_queue_id",
    "claims",
}
"""What two runs that did the same do not share."""


def steps() -> Iterator[ImportedEvent]:
    """One of every kind that leaves rows: claims repeated, edits of older images, an end that was taken back."""
    ball, other, edit = picture(10), picture(20), picture(30, origin="edited", original=picture(10))
    claims = (Claim(1, "red balls"), Claim(2, "round things", "refuted", "4.1"))
    shown = [
        (
            Logged("a ball", 3.0, ball, other, "exemplar", "a ball", 1),
            Logged("ball again", 3.5, ball, None, "generated"),
        ),
        (Logged("an edit", 1.0, edit, None, "edited", "make it blue", None, ball),),
        (Logged("last", 5.0, other, None, "original"), Logged("edit", 2.0, edit, None, "edited", "b", 2, other)),
    ]
    told: list[tuple[str, Any]] = [("started", started())]
    for number, images in enumerate(shown, 1):
        entry = LogEntry(images, f"words {number}")
        told += [
            ("reply", replied(number, prose=f"Round {number}. " * 300, hypotheses=claims[:number], code="print(1)")),
            ("experiment", experiment(number)),
            ("result", replace(result(number, exemplar_mean=2.0, best=4.0), entries=(entry,), output="out")),
        ]
    told += [
        ("reminder", Reminder(3, "continue", "Go on.", Usage(1, 2, 0.5))),
        ("blocked", Blocked(3, "No answer.")),
        ("resumed", Resumed(3, "owner")),
        ("limits", LimitsChanged(3, "owner", "", Limits(7, None, 2.0, 60.0))),
        ("cancelled", Ended("Stopped.", Conclusion("Early.", ("early",)))),
        ("resumed", Resumed(3, "owner")),
        ("handover", HandedOver(3, "owner", "scripted")),
        ("concluded", Ended("", Conclusion("It likes red.", ("red balls", "balls"), "Why.", "A bias."))),
    ]
    for kind, payload in told:
        yield ImportedEvent(kind, payload, timezone.now(), b"\x81\xa1a\x01" if kind == "result" else b"")


def rows_of(run: Run) -> dict[str, Any]:
    """All that follows from its events; images are named by where they stand."""
    places = {row.pk: (row.experiment.number, row.position) for row in run.observations.select_related("experiment")}
    found = {kind.__name__: list(map(fields, kind.objects.filter(run=run).order_by("pk"))) for kind in KINDS}
    passages = SearchText.objects.filter(run=run).order_by("pk")
    labels = Label.objects.filter(run=run).order_by("pk")
    return found | {
        "Passage": [
            fields(row) | ({"anchor": places[row.anchor or 0]} if row.kind == "title" else {}) for row in passages
        ],
        "Experiments": [places[row.pk][0] for row in run.observations.order_by("pk")],
        "Label": [(row.text, row.source, row.position, list(row.units.values_list("number"))) for row in labels],
        "Gist": RunSummary.objects.get(run=run).normalized,
        "Run": fields(run),
    }


KINDS = (Event, Hypothesis, Experiment, Observation)


def fields(row: models.Model) -> dict[str, Any]:
    return {name: value for name, value in vars(row).items() if name not in OWN and not name.startswith("_")}


def test_a_run_at_once_and_event_by_event_leave_the_same_rows(owner: User) -> None:
    model = VisionModelRow.objects.create(name="toybox")
    layer = Layer.objects.create(model=model, name="layer4", position=4, path="layer4", kind="conv", units=64)
    told, one, other = list(steps()), make_run(owner), Run(**fields(make_run(owner)))
    for step in told:
        transcript.append(one.pk, step.kind, step.payload, state=step.state)
    save = transcript.replay(other, iter(told))
    assert (other.pk, Event.objects.filter(run=other.pk).count()) == (None, 0), "nothing is written before"
    with transaction.atomic():
        save()
    there, here = rows_of(Run.objects.get(pk=one.pk)), rows_of(Run.objects.get(pk=other.pk))
    assert here == there
    assert [row["text"] for row in here["Hypothesis"]] == ["red balls", *["red balls", "round things"] * 2]
    assert [row["is_original"] for row in here["Observation"]] == [True, True, False, True, False]
    assert [row["change"] for row in here["Observation"]] == [None, None, -2.0, None, -3.0]
    assert Unit.objects.get(layer=layer).labels.count() == 6
    assert set(runs_matching("likes red")) == {one.pk, other.pk}
    found = SearchText.objects.filter(pk__in=find(["make it blue"], SearchScope()).keys)
    assert {row.run_id for row in found} == {one.pk, other.pk}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("experiment", experiment(1)), "two experiments with the number 1"),
        (("result", result(2)), "no experiment 2"),
        (("reply", replied(1, hypotheses=(Claim(1, "a"), Claim(1, "b")))), "two hypotheses with the number 1"),
        (("result", None), "two results"),
    ],
)
def test_what_the_database_would_refuse_is_refused_before_it_is_asked(
    more: tuple[str, Any], reason: str, owner: User
) -> None:
    logged = result(1, images=(picture(10),))
    told = [("started", started()), ("experiment", experiment(1)), ("result", logged)]
    run = Run(**fields(make_run(owner)))
    events = [ImportedEvent(kind, payload or logged, timezone.now()) for kind, payload in [*told, more]]
    with pytest.raises(ExchangeError, match=f"Event 4 does not fit the events before it: .*{reason}"):
        import_bundle.replay_events(run, iter(events))


@pytest.mark.django_db(transaction=True)
def test_others_write_while_a_long_run_is_gone_through(
    owner: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another connection writes at one event in every fifty, whenever that is read."""
    path = bundled(run := long_run(owner, 100, images=3), path=tmp_path / "run.zip")
    run.delete()
    seen = 0

    def read(kind: str, data: Any) -> Payload:
        nonlocal seen
        seen += 1
        if seen % 50 == 0:
            others.submit(write_elsewhere, f"tag {seen}").result()
        return decode(kind, data)

    monkeypatch.setattr(validate_bundle, "decode_payload", read)
    with ThreadPoolExecutor(1) as others, CaptureQueriesContext(connection) as asked:
        (taken,) = import_bundle.bundle(path, ImportSource("run.zip", owner), exchange.laboratory())
    assert (taken.run.last_seq, taken.run.observation_count, seen) == (302, 300, 604)
    assert Tag.objects.count() == seen // 50
    assert len(asked) < 100, "statements, of a run with 302 events"


def test_the_statements_that_write_a_run_do_not_grow_with_it(owner: User) -> None:
    counted = []
    for rounds in (5, 150):
        told = [
            ImportedEvent(each.kind, each.content, each.time) for each in long_run(owner, rounds, images=2).events.all()
        ]
        save = transcript.replay(Run(**fields(make_run(owner))), iter(told))
        with transaction.atomic(), CaptureQueriesContext(connection) as asked:
            save()
        counted.append(len(asked))
    assert counted[0] == counted[1], "each row is made ready before, and those of a kind are written at once"


def tag_everything(run: Run) -> None:
    """Two tags to each experiment, one to each image, and labels of another method on many units."""
    tags = [Tag.objects.create(name=name) for name in ("odd", "look again")]
    for row in run.experiments.all():
        row.tags.set(tags)
    for image in run.observations.all():
        image.tags.add(tags[0])
    units = [Unit.objects.create(layer=Layer.objects.get(), number=number) for number in range(20)]
    for number in range(30):
        Label.objects.create(run=run, text=f"label {number}", source="milan").units.set(units)


def found_tags(run: Run) -> tuple[list[Any], list[Any], list[Any]]:
    """Who has which tag, what search finds of them, and which units have which labels."""
    experiments = run.experiments.order_by("number", "tags__name").values_list("number", "tags__name")
    places = ("experiment__number", "position", "tags__name")
    images = run.observations.order_by(*places).values_list(*places)
    passages = (
        SearchText.objects.filter(run=run, kind="tag").order_by("seq", "text").values_list("seq", "text", "layer")
    )
    labels = (
        run.label_set.filter(source="milan")
        .order_by("text", "units__number")
        .values_list("text", "source", "units__number")
    )
    return [*experiments, *images], list(passages), list(labels)


def test_tags_and_labels_of_others_are_saved_in_few_queries(owner: User, tmp_path: Path) -> None:
    model = VisionModelRow.objects.create(name="toybox")
    Layer.objects.create(model=model, name="layer4", position=4, path="layer4", kind="conv", units=64)
    tag_everything(run := long_run(owner, 40, images=2))
    path, there = bundled(run, path=tmp_path / "run.zip"), found_tags(run)
    run.delete()
    Tag.objects.all().delete()
    Unit.objects.all().delete()
    with CaptureQueriesContext(connection) as asked:
        (taken,) = brought(path, owner)
    assert found_tags(taken.run) == there
    assert [len(each) for each in there] == [160, 160, 600]
    assert len(asked) < 120, "statements, for 160 tags and 600 labels of units"


def write_elsewhere(name: str) -> None:
    Tag.objects.create(name=name)
    connection.close()


def test_events_that_would_fill_the_memory_are_refused(
    owner: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bundled(run := long_run(owner, 3), path=tmp_path / "run.zip")
    run.delete()
    monkeypatch.setattr(validate_bundle, "EVENTS", 1_000)
    with pytest.raises(ExchangeError, match=r"'events.jsonl' is larger than"):
        brought(path, owner)
    assert not Run.objects.exists()
