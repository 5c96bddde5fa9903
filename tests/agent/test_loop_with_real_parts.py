"""The loop on a real sandbox and a real laboratory, small enough to know the numbers. Only the replies are written."""

from __future__ import annotations

import pytest

from tests.support.playback import Playback, kinds, new_run_log, notes
from tests.support.tiny_lab import TinyContext, TinyModel, TinyPictures
from workers.agent.loop import ProgramOutcome, run_agent
from workers.lab.exemplars import ExemplarIndex
from workers.lab.memory import ImagesInMemory
from workers.lab.program_api import list_calls, list_facts
from workers.protocols import Bounds, LabSettings
from workers.sandbox.host import ZygoteSandbox
from workers.sandbox.program import program_style

EXEMPLARS = """[CODE]:
```python
def run_experiment(system, tools):
    activations, images = tools.dataset_exemplars(system)
    tools.log_experiment(activations, images, [f"exemplar {n}" for n in range(len(images))], "the exemplars")
```"""
CONTRAST = """[CODE]:
```python
def execute_command(system, tools):
    images, titles = tools.edit_images(["a grey square"], ["make it green"])
    tools.save_experiment_log(*system.call_neuron(images), titles, "")
    raise ValueError("after the log")
```"""
CONCLUSION = "[DESCRIPTION]: Red squares.\n[LABEL]: red squares"


class Laboratory:
    """Runs programs as a worker does."""

    def __init__(self, sandbox, folder):
        names = ("black 0", "red 0", "red 1", "green 2", "grey 3")
        self.index = ExemplarIndex(LabSettings(folder, batch_size=4), TinyModel(), TinyPictures(*names))
        self.sandbox = sandbox
        self.memory = ImagesInMemory()

    def __call__(self, code, number, state):
        context = TinyContext(self.index, memory=self.memory)
        served = list_calls(context.system, context.tools, program_style(code))
        result = self.sandbox.run(code, served, list_facts(context.system), bounds=Bounds(seconds=20), state=state)
        return ProgramOutcome(
            result,
            tuple(context.tools.entries),
            context.tools.exemplar_mean,
            best=context.tools.best,
            measured=context.tools.measured,
        )


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    backbone, run_log = Playback(EXEMPLARS, CONTRAST, CONCLUSION), new_run_log()
    with ZygoteSandbox() as sandbox:
        laboratory = Laboratory(sandbox, tmp_path_factory.mktemp("lab"))
        while run_agent(run_log, backbone, laboratory, laboratory.memory.load):
            pass
    return run_log, backbone


def test_a_run_ends_with_its_conclusion(played):
    run_log, _ = played
    assert kinds(run_log)[-1] == "concluded"
    assert notes(run_log) == ["continue"]


def test_the_agent_is_told_the_numbers_of_the_laboratory(played):
    _, backbone = played
    exemplars, contrast = (message.text for message in backbone.heard if message.text.startswith("Experiment"))
    assert exemplars.splitlines()[:5] == [
        "Experiment 1: ok",
        "1. exemplar 0 — activation 1.00",
        "2. exemplar 1 — activation 1.00",
        "3. exemplar 2 — activation 0.20",
        "Notes: the exemplars",
    ]
    assert "Mean exemplar activation: 0.73" in exemplars
    assert contrast.startswith("Experiment 2: program error\n")
    assert "ValueError: after the log" in contrast
    assert "1. a grey square — activation 0.20\n2. make it green — activation 0.00 (edited from 1)" in contrast
