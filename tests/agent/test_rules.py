"""The rules of a round, one adversarial test for each; and that a run killed anywhere goes on as if it had not been."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.playback import (
    CONCLUSION,
    PROGRAM,
    RED_BALLS,
    Lab,
    Playback,
    begin,
    end,
    kinds,
    logged,
    new_run_log,
    notes,
    play,
    programs,
)
from tests.support.run_log import RunLogInMemory, fold
from workers.agent.rules import Ask, next_step
from workers.errors import (
    MachineryError,
)
from workers.record.limits import Limits, Usage
from workers.record.replies import Conclusion

# --- the rules of a round -------------------------------------------------------------------------


def test_a_reply_with_a_program_and_a_conclusion_runs_the_program_first_and_concludes_again():
    hasty = PROGRAM.format(1) + "\n[DESCRIPTION]: hasty\n[LABEL]: hasty"
    backbone = Playback(hasty, CONCLUSION)
    lab = Lab()
    run_log = play(backbone, lab)
    assert lab.ran == [1]
    assert kinds(run_log) == ["started", "reply", "experiment", "result", "reminder", "reply", "concluded"]
    assert notes(run_log) == ["conclude_again"]
    assert end(run_log).conclusion == RED_BALLS
    assert "experiment 1" in backbone.heard[-1].text


def test_a_reply_with_neither_gets_a_reminder_of_the_form():
    backbone = Playback("Let me think.", CONCLUSION)
    run_log = play(backbone)
    assert kinds(run_log) == ["started", "reply", "reminder", "reply", "concluded"]
    assert "[CODE]:" in backbone.heard[-1].text


def test_three_replies_in_a_row_with_neither_end_the_run_with_a_reason():
    backbone = Playback("Hm.", "Hm.", "Hm.", CONCLUSION)
    run_log = play(backbone)
    assert kinds(run_log) == ["started", "reply", "reminder", "reply", "reminder", "reply", "failed"]
    assert "3 replies in a row" in end(run_log).reason
    assert end(run_log).conclusion == Conclusion()


def test_a_program_between_them_starts_the_count_anew():
    run_log = play(Playback("Hm.", "Hm.", PROGRAM.format(1), "Hm.", "Hm.", CONCLUSION))
    assert kinds(run_log)[-1] == "concluded"
    assert notes(run_log) == ["format"] * 4


def test_a_weak_result_gets_a_note_to_go_on_with_both_figures():
    backbone = Playback(*programs(1), CONCLUSION)
    run_log = play(backbone, Lab(logged(11.5, 4.0, exemplar_mean=28.9)))
    assert notes(run_log) == ["continue"]
    assert "11.50" in backbone.heard[-1].text
    assert "28.90" in backbone.heard[-1].text


@pytest.mark.parametrize(
    "outcome",
    [
        logged(11.5, 28.9, exemplar_mean=28.9),
        logged(11.5),
        logged(exemplar_mean=28.9),
        logged(5.0, 5.0, exemplar_mean=5.0000001),
        logged(-1.0, exemplar_mean=-2.0),
    ],
    ids=["reaches it", "no exemplar_mean", "no images", "alike but for rounding", "negative"],
)
def test_other_results_get_no_such_note(outcome):
    assert notes(play(Playback(*programs(1), CONCLUSION), Lab(outcome))) == []


def test_the_exemplar_mean_is_known_from_the_round_that_looked_at_the_exemplars():
    run_log = play(Playback(*programs(3), CONCLUSION), Lab(logged(exemplar_mean=28.9), logged(7.0), logged(30.0)))
    assert [event.payload.exemplar_mean for event in run_log.events() if event.kind == "result"] == [28.9] * 3
    assert notes(run_log) == ["continue"]


@pytest.mark.parametrize(
    "outcomes",
    [
        [logged(17.36, exemplar_mean=15.82), logged(3.0)],
        [
            replace(logged(6.54, exemplar_mean=9.24), best=9.41, measured=2),
            replace(logged(8.75), best=8.75, measured=1),
        ],
        [logged(9.21, exemplar_mean=9.24), logged(1.0)],
        [replace(logged(15.0, exemplar_mean=15.82), measured=15), replace(logged(15.0), measured=1)],
    ],
    ids=["reached before", "reached by an image that was not logged", "a hair below", "exemplars alone"],
)
def test_nobody_is_told_to_go_on_once_the_run_has_come_near_the_mark(outcomes):
    backbone = Playback(*programs(2), CONCLUSION)
    run_log = play(backbone, Lab(*outcomes))
    assert notes(run_log) == []


@pytest.mark.parametrize("second", [logged(), replace(logged(15.0), measured=15)], ids=["nothing", "exemplars alone"])
def test_nobody_is_told_again_to_go_on_by_a_result_that_has_no_images_of_its_own(second):
    run_log = play(Playback(*programs(2), CONCLUSION), Lab(logged(7.0, exemplar_mean=28.9), second))
    assert notes(run_log) == ["continue"]


def test_the_agent_is_told_how_far_below_the_mark_the_best_of_all_rounds_lies():
    backbone = Playback(*programs(2), CONCLUSION)
    outcomes = [
        replace(logged(6.54, exemplar_mean=9.24), best=9.21, measured=2),
        replace(logged(8.75), best=8.75, measured=1),
    ]
    run_log = play(backbone, Lab(*outcomes), new_run_log(limits=Limits(rounds=7)))
    results = [event.payload for event in run_log.events() if event.kind == "result"]
    assert [(result.best, result.rounds) for result in results] == [(9.21, 7), (9.21, 7)]
    assert "exemplars aside: 9.21, 0.03 below that mean" in backbone.heard[-1].text
    assert backbone.heard[-1].text.endswith("This was round 2 of 7: 5 are left.")


def test_an_agent_that_is_to_conclude_again_is_not_told_to_go_on_as_well():
    hasty = PROGRAM.format(1) + "\n[LABEL]: hasty"
    assert notes(play(Playback(hasty, CONCLUSION), Lab(logged(1.0, exemplar_mean=28.9)))) == ["conclude_again"]


# --- limits ---------------------------------------------------------------------------------------


def test_a_limit_gives_one_more_reply_and_its_conclusion_is_kept():
    backbone = Playback(*programs(2), CONCLUSION)
    run_log = play(backbone, run_log=new_run_log(limits=Limits(rounds=2)))
    assert kinds(run_log)[-4:] == ["result", "reminder", "reply", "limit_reached"]
    assert notes(run_log) == ["final_answer"]
    assert end(run_log).conclusion == RED_BALLS
    assert end(run_log).reason == "The limit of 2 rounds is reached: 2 rounds used."
    assert end(run_log).reason in backbone.heard[-1].text


@pytest.mark.parametrize("last", ["Hm.", PROGRAM.format(2), ""])
def test_the_run_ends_whatever_the_last_reply_holds_and_no_program_of_it_runs(last):
    lab = Lab()
    run_log = play(Playback(*programs(1), last, last), lab, new_run_log(limits=Limits(rounds=1)))
    assert kinds(run_log)[-4:] == ["reply", "reminder", "reply", "limit_reached"]
    assert end(run_log).conclusion == Conclusion()
    assert lab.ran == [1]


def test_a_conclusion_beside_a_program_counts_in_the_last_reply():
    last = PROGRAM.format(2) + "\n" + CONCLUSION
    run_log = play(Playback(*programs(1), last), Lab(), new_run_log(limits=Limits(rounds=1)))
    assert end(run_log).conclusion == RED_BALLS


def test_a_conclusion_in_the_very_round_that_reaches_the_limit_is_no_limit_reached():
    run_log = play(Playback(CONCLUSION), run_log=new_run_log(limits=Limits(rounds=1)))
    assert kinds(run_log)[-1] == "concluded"


@pytest.mark.parametrize("limits", [Limits(tokens=200), Limits(cost=0.02)], ids=["tokens", "cost"])
def test_tokens_and_cost_are_counted_over_all_replies(limits):
    backbone = Playback(*programs(2), CONCLUSION, usage=Usage(90, 10, 0.01))
    run_log = play(backbone, run_log=new_run_log(limits=limits))
    assert backbone.asked == [1, 2, 3]
    assert kinds(run_log)[-1] == "limit_reached"


def test_seconds_are_counted_by_the_notebook():
    class Slow(RunLogInMemory):
        def seconds(self):
            return 10.0 * len(self.events())

    run_log = Slow()
    run_log.append("started", begin(limits=Limits(seconds=35)))
    play(Playback(*programs(1), CONCLUSION), run_log=run_log)
    assert kinds(run_log)[-1] == "limit_reached"
    assert "35 seconds" in end(run_log).reason


# --- killed anywhere ------------------------------------------------------------------------------


STORY = [
    PROGRAM.format(1),
    "Hm.",
    [MachineryError("dead"), MachineryError("dead"), PROGRAM.format(2) + "\n[LABEL]: hasty"],
    PROGRAM.format(3),
    CONCLUSION,
]
RESULTS = (logged(40.0, exemplar_mean=28.9), logged(3.0), logged(9.0))


def without_times(events):
    return [
        replace(event, payload=replace(event.payload, seconds=0.0)) if event.kind == "reply" else event
        for event in events
    ]


def whole_run(limits):
    story = [list(reply) if isinstance(reply, list) else reply for reply in STORY]
    return play(Playback(*story), Lab(*RESULTS), new_run_log(limits=limits), tries=2).events()


@pytest.mark.parametrize(("rounds", "expected"), [(25, "concluded"), (4, "limit_reached"), (2, "limit_reached")])
def test_a_run_killed_after_any_step_ends_with_the_same_events(rounds, expected):
    whole = whole_run(Limits(rounds=rounds))
    assert whole[-1].kind == expected
    for length in range(1, len(whole)):
        prefix = whole[:length]
        replies = sum(event.kind == "reply" for event in prefix)
        results = sum(event.kind == "result" for event in prefix)
        troubles = sum(event.kind == "retrying" for event in prefix)
        story = [reply[troubles:] if isinstance(reply, list) else reply for reply in STORY]
        backbone, lab = Playback(*story), Lab(*RESULTS)
        events = play(backbone, lab, RunLogInMemory(prefix), tries=2).events()
        assert without_times(events) == without_times(whole)
        assert all(place > replies for place in backbone.asked)
        assert all(number > results for number in lab.ran)


def test_a_worker_killed_in_mid_experiment_leaves_a_run_that_runs_it_again_under_its_number():
    run_log = new_run_log()
    with pytest.raises(KeyboardInterrupt):
        play(Playback(*programs(1)), Lab(KeyboardInterrupt()), run_log)
    assert kinds(run_log) == ["started", "reply", "experiment"]
    lab = Lab()
    play(Playback(*programs(1), CONCLUSION), lab, run_log)
    assert kinds(run_log) == ["started", "reply", "experiment", "result", "reply", "concluded"]
    assert lab.ran == [1]


def test_the_next_step_depends_on_the_events_alone():
    events = whole_run(Limits())
    for length in range(1, len(events)):
        assert next_step(fold(events[:length]), 0.0) == next_step(fold(list(events[:length])), 0.0)
    assert next_step(fold(events), 0.0) is None
    assert next_step(fold(events[:1]), 0.0) == Ask(1)
