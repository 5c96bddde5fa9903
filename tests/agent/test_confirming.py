"""A bias that a conclusion states is tested on images of new prompts that came after it, before the run ends."""

from __future__ import annotations

from tests.support.playback import Lab, Playback, end, kinds, new_run_log, notes, play
from tests.support.run_log import RunLogInMemory
from workers.agent.loop import ProgramOutcome
from workers.protocols import ExperimentResult
from workers.record.experiments import LogEntry, Observation
from workers.record.limits import Limits
from workers.record.origins import Origin

CODE = "[CODE]:\n```python\nprogram {}\n```"
BIAS = '[BIAS]: Weaker for balls at night (titles with "ball" and "night"): 0.4.'
STATED = f"{BIAS}\n[LABEL]: night"
NONE = "[BIAS]: I found none.\n[LABEL]: none"


def drawn(*names: str) -> ProgramOutcome:
    """A program that drew a ball at night and one by day for each name."""
    images = [
        Observation(f"a {name} ball {light}", value, "", None, Origin.GENERATED, measured=True)
        for name in names
        for light, value in (("at night", 0.4), ("by day", 0.8))
    ]
    return ProgramOutcome(ExperimentResult("ok"), (LogEntry(tuple(images)),))


FIRST, NEW = drawn("red", "blue"), drawn(*"abcdefgh")


def study(*replies: str, lab: Lab | None = None, **given: object) -> tuple[Playback, RunLogInMemory]:
    usual: dict[str, object] = {"task": "bias", "reference": "### tools.text2image(prompt_list)"}
    backbone = Playback(*replies)
    return backbone, play(backbone, lab or Lab(FIRST, NEW), new_run_log(**usual | given))


def test_the_agent_is_asked_to_test_what_it_states_and_then_concludes() -> None:
    backbone, run_log = study(CODE.format(1), STATED, CODE.format(2), STATED)
    assert notes(run_log) == ["confirm"]
    assert kinds(run_log)[-4:] == ["experiment", "result", "reply", "concluded"]
    words = next(each.text for each in backbone.heard if "have to be tested" in each.text)
    assert '> Weaker for balls at night (titles with "ball" and "night"): 0.4.' in words
    assert "8 different prompts" in words
    assert end(run_log).conclusion.labels == ("night",)


def test_who_states_it_with_the_program_that_tests_it_is_not_asked() -> None:
    _, run_log = study(CODE.format(1), f"{CODE.format(2)}\n{BIAS}", STATED)
    assert "confirm" not in notes(run_log)
    assert kinds(run_log)[-1] == "concluded"


def test_what_the_new_images_refute_may_be_left_out() -> None:
    _, run_log = study(CODE.format(1), STATED, CODE.format(2), NONE)
    assert notes(run_log) == ["confirm"]
    assert "found none" in end(run_log).conclusion.bias


def test_it_is_asked_twice_at_most() -> None:
    _, run_log = study(CODE.format(1), STATED, STATED, STATED)
    assert notes(run_log) == ["confirm", "confirm"]
    assert kinds(run_log)[-1] == "concluded"


def test_nobody_is_asked_without_a_statement_a_generator_or_rounds_and_of_no_other_task() -> None:
    for told in (
        study(CODE.format(1), NONE),
        study(CODE.format(1), STATED, reference="### tools.dataset_exemplars(system)"),
        study(CODE.format(1), STATED, limits=Limits(rounds=3)),
        study(CODE.format(1), STATED, task="free"),
    ):
        assert notes(told[1]) == []
        assert kinds(told[1])[-1] == "concluded"
