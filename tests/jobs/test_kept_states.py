"""A worker goes on with the state of a run that it knows, and never with a stale one, or that of another run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from experiments.core import transcript
from experiments.models import Event, Run
from tests.support.builders import experiment, make_run, replied, result, started
from tests.support.run_log import fold
from tests.support.steering import Meanwhile
from tests.support.tiny_run import CONCLUSION, LOOK, install, play, tiny_run
from workers.errors import MachineryError
from workers.jobs import laboratory as place
from workers.jobs import lease, run_log
from workers.jobs.images import ImagesInDatabase
from workers.jobs.kept_states import MAX_RECENT, KeptState, KeptStates
from workers.jobs.run_log import DatabaseRunLog
from workers.jobs.run_round import execute_round as run_agent
from workers.record.events import Event as Recorded
from workers.record.events import Note

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> KeptStates:
    """The memory of a worker that has just begun."""
    memory = KeptStates()
    monkeypatch.setattr(run_log, "kept_states", memory)
    return memory


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The events that were read, by number."""
    numbers: list[int] = []
    list_events = transcript.list_events

    def listen(run_id: int, seq: int, limit: int = 200) -> Any:
        rows = list_events(run_id, seq, limit)
        numbers.extend(row.seq for row in rows)
        return rows

    monkeypatch.setattr(transcript, "list_events", listen)
    return numbers


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Iterator[None]:
    install(monkeypatch, settings, tmp_path)
    yield
    place.build_laboratory.cache_clear()


def open_log(run: Run) -> DatabaseRunLog:
    return DatabaseRunLog(Run.objects.get(pk=run.pk), ImagesInDatabase(), threading.Event())


def begin(owner: User) -> Run:
    """A run of three events whose state is kept."""
    run = make_run(owner)
    log = open_log(run)
    for kind, payload in (("started", started()), ("reply", replied(code="x = 1")), ("experiment", experiment())):
        log.append(kind, payload)
    log.keep_state()
    return run


def read_all(run: Run) -> Any:
    rows = Event.objects.filter(run=run).order_by("seq")
    return fold([Recorded(row.seq, row.kind, row.content) for row in rows])


def play_one_round(run: Run) -> bool:
    claimed = lease.claim(run.pk)
    assert claimed
    with lease.hold_lease(claimed) as lost:
        return run_agent(claimed, lost)


def test_the_next_round_reads_no_event_that_is_known_but_the_last(owner: User, tiny: None, read: list[int]) -> None:
    run = tiny_run(owner, Meanwhile(LOOK, LOOK, CONCLUSION))
    assert play_one_round(run)
    assert read == []
    assert play_one_round(run)
    assert read == [4]
    assert not play_one_round(run)
    assert read == [4, 7]


def test_what_others_did_between_two_rounds_is_read(owner: User, read: list[int]) -> None:
    run = begin(owner)
    transcript.append(run.pk, "note", Note(1, "Ada", "Look at cars."))
    transcript.append(run.pk, "result", result(), state=b"other")
    log = open_log(run)
    assert log.read() == read_all(run)
    assert read == [3, 4, 5]
    assert log.state() == b"other"


def test_a_run_with_the_key_of_another_starts_afresh(owner: User) -> None:
    run = begin(owner)
    key, created = run.pk, run.created
    run.delete()
    again = make_run(owner, pk=key)
    transcript.append(key, "started", started())
    assert open_log(again).read() == read_all(again)
    # Even one that was created at the very same time
    open_log(again).keep_state()
    Run.objects.filter(pk=key).update(created=created)
    assert open_log(again).read() == read_all(again)


def test_a_state_with_an_event_that_is_gone_is_dropped(owner: User, kept: KeptStates) -> None:
    run = begin(owner)
    Event.objects.filter(run=run, seq=3).delete()
    log = open_log(run)
    assert log.read().last_seq == 2
    assert kept.take(run) is None
    Event.objects.create(run=run, seq=3, kind="experiment", payload={"round": 1, "number": 1, "code": "y = 2"})
    assert open_log(run).read() == read_all(run)


def test_an_event_that_is_rolled_back_does_not_stay(owner: User) -> None:
    run = begin(owner)
    log = open_log(run)
    log.read()
    with transaction.atomic():
        log.append("result", result(), state=b"left")
        transaction.set_rollback(True)
    assert log.read() == read_all(run)
    assert (log.known.last_seq, log.state()) == (3, b"")


def test_two_rounds_at_once_never_share_a_state(owner: User) -> None:
    run = begin(owner)
    first, second = open_log(run), open_log(run)
    assert first.read() == second.read()
    assert first.known is not second.known
    first.append("result", result())
    assert second.known.last_seq == 3
    assert second.read() == first.read() == read_all(run)


def test_a_round_that_broke_off_leaves_nothing(owner: User, tiny: None, kept: KeptStates) -> None:
    run = tiny_run(owner, Meanwhile(LOOK, MachineryError("dead"), CONCLUSION))
    assert play_one_round(run)
    with pytest.raises(MachineryError):
        play_one_round(run)
    assert kept.take(run) is None


def test_a_run_that_ended_is_forgotten(owner: User, tiny: None, kept: KeptStates) -> None:
    run = play(tiny_run(owner, Meanwhile(LOOK, CONCLUSION)))
    assert run.has_ended
    assert kept.take(run) is None


def test_what_an_experiment_left_is_read_once(owner: User, django_assert_num_queries: Any) -> None:
    run = begin(owner)
    log = open_log(run)
    log.read()
    log.append("result", result(), state=b"left")
    log.keep_state()
    later = open_log(run)
    later.read()
    with django_assert_num_queries(0):
        assert later.state() == b"left"


def test_what_is_too_much_is_forgotten_the_oldest_first(owner: User) -> None:
    runs = [make_run(owner) for _ in range(MAX_RECENT + 1)]
    last = Event(seq=1, kind="started")
    state = fold([Recorded(seq, "note", Note(0, "Ada", "Look.")) for seq in range(1, 5)])
    memory = KeptStates()
    for run in runs:
        memory.put(run, KeptState(state, last))
    assert [memory.take(run) is None for run in runs] == [True] + [False] * MAX_RECENT
    small = KeptStates(most_events=8)
    for run in runs[:3]:
        small.put(run, KeptState(state, last))
    assert [small.take(run) is None for run in runs[:3]] == [True, False, False]
