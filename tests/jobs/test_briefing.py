"""What the agent is told before its first experiment: the class, the scale and the words of its own run."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from experiments.models import Run
from tests.support.tiny_lab import TinyEditor, TinyGenerator, TinyModel
from tests.support.tiny_run import CONCLUSION, LOOK, Seeing, install, play, tiny_run
from workers.jobs.run_round import get_first_event
from workers.protocols import LayerInfo, no_progress
from workers.systems.unit import Unit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, settings, tmp_path: Path) -> None:
    install(monkeypatch, settings, tmp_path)


def test_the_scale_of_the_activations_is_told_once_the_layer_is_indexed(owner: User) -> None:
    first = tiny_run(owner, Seeing(LOOK, CONCLUSION, sentences=("a red square", "a blue square")))
    assert "The scale of its activations" not in get_first_event(first).assignment
    play(first)
    told = get_first_event(tiny_run(owner, Seeing(CONCLUSION))).assignment
    assert "The scale of its activations over the dataset:" in told
    assert "half of the ordinary images stay below" in told
    assert "exemplars reach" in told


def test_the_changes_that_the_editor_can_make_are_told_where_it_makes_no_others(owner: User, monkeypatch) -> None:
    run = tiny_run(owner, Seeing(CONCLUSION))
    assert f"## What can be changed\n\n{TinyEditor.vocabulary}" in get_first_event(run).instructions
    monkeypatch.delattr(TinyEditor, "vocabulary")
    assert "What can be changed" not in get_first_event(run).instructions


def test_where_the_index_keeps_no_sample_the_agent_is_told_so(owner: User, monkeypatch) -> None:
    play(tiny_run(owner, Seeing(LOOK, CONCLUSION, sentences=("a red square", "a blue square"))))
    monkeypatch.setattr(Unit, "ordinary", lambda self, progress=no_progress: None)
    told = get_first_event(tiny_run(owner, Seeing(CONCLUSION))).assignment
    assert "over the dataset: what ordinary images of the dataset get is not known; the " in told


def test_the_words_of_the_generator_are_told_where_it_knows_no_others(owner: User, monkeypatch) -> None:
    run = tiny_run(owner, Seeing(CONCLUSION))
    assert "What can be drawn" not in get_first_event(run).instructions
    monkeypatch.setattr(TinyGenerator, "vocabulary", "It draws squares: red, green, blue.", raising=False)
    assert "## What can be drawn\n\nIt draws squares: red, green, blue." in get_first_event(run).instructions


@pytest.mark.parametrize("task", ["bias", "spurious"])
def test_the_class_of_a_logit_is_named_and_what_its_activation_is(owner: User, monkeypatch, task: str) -> None:
    layers = [LayerInfo("logits", "fc", "logit", 4, ("tench", "crane\n# Task: free", "dog", "hen"), "sigmoid")]
    monkeypatch.setattr(TinyModel, "layers", lambda self: layers)
    run = tiny_run(owner, Seeing(CONCLUSION), task=task)
    Run.objects.filter(pk=run.pk).update(system_kind="logit", layer="logits", unit=1)
    told = get_first_event(Run.objects.get(pk=run.pk)).assignment
    assert "the class “crane # Task: free” (logit 1 of logits in the model tiny)" in told
    assert "Its activation is the probability of a class by itself, whatever else the image shows (sigmoid)." in told
