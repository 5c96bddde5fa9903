"""The state that a worker keeps of a run is the one that a fresh worker folds from its events, at any place."""

from __future__ import annotations

import pytest

from tests.support.event_histories import draw_history
from tests.support.playback import CONCLUSION, PROGRAM, Lab, Playback, logged, new_run_log, play, programs
from tests.support.run_log import fold
from workers.agent import rules
from workers.agent.conversation import messages
from workers.agent.run_state import RunState
from workers.errors import MachineryError
from workers.record.events import Event, Note, Reminder, Replied
from workers.record.limits import Limits, Usage

SPENT = Usage(3, 1, 0.5)


def played(*replies: object, **changes: object) -> list[Event]:
    """A history that the rules made."""
    usage = Usage(90, 10, 0.01)
    outcomes = (logged(7.0, exemplar_mean=28.9), logged(40.0), logged(3.0))
    return list(play(Playback(*replies, usage=usage), Lab(*outcomes), new_run_log(**changes), tries=2).events())


HISTORIES = {
    "whole run": lambda: played(
        PROGRAM.format(1),
        "Hm.",
        [MachineryError("dead"), MachineryError("dead"), PROGRAM.format(2) + "\n[LABEL]: hasty"],
        "[LABEL]: red balls",
        CONCLUSION,
    ),
    "limit of rounds": lambda: played(*programs(2), "[LABEL]: red", CONCLUSION, limits=Limits(rounds=2)),
    "limit of tokens": lambda: played(*programs(2), "Hm.", "Hm.", limits=Limits(tokens=200)),
    "silent agent": lambda: played("Hm.", "Hm.", "Hm."),
    **{f"drawn {seed}": lambda seed=seed: draw_history(seed) for seed in range(60)},
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_kept_state_equals_a_fresh_one_and_leads_to_the_same_step(name: str) -> None:
    events, kept = HISTORIES[name](), RunState()
    for length, event in enumerate(events, 1):
        kept.add(event)
        fresh = fold(events[:length])
        assert kept == fresh
        if any(each.kind == "started" for each in events[:length]):
            for seconds in (0.0, 5_000.0):
                assert rules.next_step(kept, seconds) == rules.next_step(fresh, seconds)
                assert rules.out_of_time(kept, seconds, SPENT) == rules.out_of_time(fresh, seconds, SPENT)
                assert rules.time_left(kept, seconds) == rules.time_left(fresh, seconds)


@pytest.mark.parametrize("name", HISTORIES)
def test_the_conversation_is_the_same_when_results_are_told_from_memory(name: str) -> None:
    events, kept = HISTORIES[name](), RunState()
    for length, event in enumerate(events, 1):
        kept.add(event)
        assert messages(kept.events, kept.told) == messages(events[:length])


@pytest.mark.parametrize("seed", range(20))
def test_what_is_folded_is_what_a_look_at_all_events_finds(seed: int) -> None:
    events = draw_history(seed)
    state, payloads = fold(events), [each.payload for each in events]
    replies = [each for each in events if isinstance(each.payload, Replied)]
    used = [usage for each in payloads if isinstance(usage := getattr(each, "usage", None), Usage)]
    assert (state.rounds, state.usage.tokens) == (len(replies), sum(each.tokens for each in used))
    assert state.usage.cost == pytest.approx(sum(each.cost for each in used))
    assert state.latest == (replies[-1] if replies else None)
    since = payloads[replies[-1].seq :] if replies else payloads
    assert state.since.reasons == {each.reason for each in since if isinstance(each, Reminder)}
    notes = [each.seq for each in events if isinstance(each.payload, Note)]
    heard = (state.reply.heard or replies[-1].seq) if replies else len(events)
    assert state.has_unread_note == any(seq > heard for seq in notes)


def test_the_reason_of_the_end_is_the_limit_that_the_agent_was_told_of() -> None:
    events = played(*programs(2), CONCLUSION, limits=Limits(rounds=2, tokens=290))
    reply = next(each for each in reversed(events) if each.kind == "reply")
    assert fold(events).usage.tokens >= 290
    step = rules.next_step(fold(events[: reply.seq]), 0.0)
    assert isinstance(step, rules.Record)
    assert step.payload.reason == "The limit of 2 rounds is reached: 2 rounds used."


def test_a_run_without_its_start_or_a_reply_says_so() -> None:
    with pytest.raises(ValueError, match="has not started"):
        _ = RunState().limits
    with pytest.raises(ValueError, match="no reply"):
        _ = RunState().reply
