"""A run counts the bytes of images that its programs store, round by round, and ends none of them for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.models import Experiment, Run
from tests.support.tiny_run import CONCLUSION, PROGRAM, Seeing, install, play, tiny_run
from workers.jobs import laboratory as place
from workers.protocols import Bounds

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

MEASURE = PROGRAM.format("print(system.neuron([Image.new('RGB', (30, 10), {0!r})])[0])")


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Iterator[None]:
    install(monkeypatch, settings, tmp_path)
    yield
    place.build_laboratory.cache_clear()
    place.sandbox().close()
    place.build_sandbox.cache_clear()


def test_a_run_counts_what_its_programs_store_and_the_same_pixels_once(owner: User) -> None:
    programs = [MEASURE.format(colour) for colour in ("blue", "green", "blue")]
    run = play(tiny_run(owner, Seeing(*programs, CONCLUSION)))
    assert list(run.experiments.values_list("status", flat=True)) == ["ok"] * 3
    assert run.image_bytes >= 2 * 900
    assert run.image_bytes < 3 * 900


def test_a_run_that_stored_as_much_as_it_may_goes_on_without_new_images(owner: User) -> None:
    run = tiny_run(owner, Seeing(MEASURE.format("blue"), CONCLUSION))
    Run.objects.update(image_bytes=Bounds.run_image_bytes - 500)
    run = play(run)
    experiment = Experiment.objects.get()
    assert experiment.status == "tool_error"
    assert "This run has stored 8,589,934,092 bytes of images" in experiment.error
    assert "one run stores 8,192 MiB at most" in experiment.error
    assert run.status == "concluded"
