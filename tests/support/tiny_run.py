"""A run on the tiny laboratory, played by the real agent into the real database; only the backbone's words are written.

Called through the registry, as any plug-in is.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from threading import Event as Flag
from typing import Any

from django.contrib.auth.models import User

from experiments.models import Run
from tests.support.builders import make_run
from tests.support.playback import Playback
from tests.support.tiny_lab import RED
from workers import registry
from workers.errors import MachineryError, MissingPart
from workers.jobs import laboratory as place
from workers.jobs import lease
from workers.lab import describing
from workers.lab.describing import OBSERVER
from workers.protocols import Reply
from workers.record.limits import Usage

PROGRAM = "[HYPOTHESIS LIST]:\nHypothesis_1: crimson hunch\n\n[CODE]:\n```python\n{}\n```"
CONCLUSION = "[DESCRIPTION]: It responds to red squares.\n[LABEL]: red squares"
LOOK = PROGRAM.format(
    "def run_experiment(system, tools):\n"
    "    activations, images = system.neuron(tools.text2image(['a red square', 'a blue square']))\n"
    "    words = tools.describe_images(images, ['red', 'blue'])\n"
    "    tools.log_experiment(activations, images, ['red', 'blue'], words)"
)


class Seeing(Playback):
    """Written replies for the agent, and written sentences for the observer, in the order of their being asked for."""

    sees = True

    def __init__(self, *replies: Any, sentences: tuple[Any, ...] = (), **options: Any) -> None:
        super().__init__(*replies, **options)
        self.sentences = list(sentences)
        self.observed: list[Any] = []

    def reply(self, messages: Any, load: Any, emit: Any, seed: int) -> Reply:
        if messages[0].text != OBSERVER:
            return super().reply(messages, load, emit, seed)
        self.observed.append(
            (messages, [load(part.key).size for part in messages[1].parts if not isinstance(part, str)])
        )
        emit("")
        said = self.sentences.pop(0)
        if isinstance(said, Exception):
            raise said
        return Reply(said, Usage(100, 10, 0.25))


here: dict[str, Any] = {}
"""The backbone of the test at hand, or the error that its factory raises."""


def load_backbone(settings: Any, model: str) -> Any:
    del settings, model
    if isinstance(here["backbone"], MissingPart):
        raise here["backbone"]
    return here["backbone"]


def install(monkeypatch: Any, settings: Any, state: Path) -> None:
    """The tiny laboratory in place of the installation's; images are described one by one, as sentences are written."""
    monkeypatch.setattr(describing, "AT_ONCE", 1)
    for table, name in {
        "VISION_MODELS": "model",
        "DATASETS": "pictures",
        "IMAGE_GENERATORS": "generator",
        "IMAGE_EDITORS": "editor",
        "DESCRIBERS": "describer",
    }.items():
        monkeypatch.setattr(registry, table, {"tiny": ("Tiny", f"tests.support.tiny_lab.load_{name}")})
    monkeypatch.setattr(registry, "TOOLSETS", {"tiny": registry.Toolset("Tiny tools", "tiny", "tiny", "tiny")})
    tiny = {"tiny": ("Tiny agent", "tests.support.tiny_run.load_backbone")}
    monkeypatch.setattr(registry, "BACKBONES", registry.BACKBONES | tiny)
    settings.STATE, settings.LAB_DATASET = state, "tiny"
    # A cache of its own: no later test finds this laboratory.
    monkeypatch.setattr(place, "build_laboratory", cache(place.build_laboratory.__wrapped__))


def tiny_run(owner: User, backbone: Any, key: str = "tiny", **fields: Any) -> Run:
    """A run on the red unit; `key` names another backbone of the registry."""
    here["backbone"] = backbone
    run = make_run(owner, model="tiny", layer="patches", unit=RED, toolset="tiny", **fields)
    Run.objects.filter(pk=run.pk).update(backbone=key)
    return Run.objects.get(pk=run.pk)


def play(run: Run) -> Run:
    """Claim and play as a worker does, until the run ends or waits; trouble is tried again at once."""
    from workers.jobs.run_round import execute_round

    place.build_laboratory.cache_clear()
    while claimed := lease.claim(run.pk):
        with lease.hold_lease(claimed):
            try:
                execute_round(claimed, Flag())
            except MachineryError:
                continue
    return Run.objects.get(pk=run.pk)


def kinds(run: Run) -> list[str]:
    return list(run.events.order_by("seq").values_list("kind", flat=True))
