"""What long work inside an experiment shows, how often, for how long, and that it can be stopped from there."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.core import notify
from experiments.models import Run
from tests.support import tiny_lab
from tests.support.builders import make_run
from tests.support.tiny_run import CONCLUSION, PROGRAM, Seeing, install, kinds, play, tiny_run
from workers.errors import Cancelled
from workers.jobs import laboratory as place
from workers.jobs.images import ImagesInDatabase
from workers.jobs.run_log import DatabaseRunLog
from workers.record.events import Blocked
from workers.record.statuses import Status

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def run_log(owner: User) -> DatabaseRunLog:
    return DatabaseRunLog(make_run(owner), ImagesInDatabase(), threading.Event())


def report(run: Run) -> Any:
    """What a viewer who comes now is shown."""
    return notify.current(run.pk)[1]


def test_steps_in_quick_succession_send_few_reports(run_log: DatabaseRunLog) -> None:
    notify.redis().config_resetstat()
    for step in range(2_000):
        run_log.progress("drawing", step, 2_000)
    assert report(run_log.run)["what"] == "drawing"
    run_log.progress("drawing", 2_000, 2_000)
    assert report(run_log.run) is None
    for _ in range(500):  # a program that draws one image at a time
        run_log.progress("drawing", 1, 1)
    done = notify.redis().info("commandstats")
    assert sum(done.get(f"cmdstat_{each}", {"calls": 0})["calls"] for each in ("set", "del")) < 250


def test_a_step_that_is_recorded_takes_the_report_away(run_log: DatabaseRunLog) -> None:
    run_log.progress("denoising", 3, 50)
    assert report(run_log.run) == {"what": "denoising", "done": 3, "total": 50}
    run_log.append("blocked", Blocked(1, "No credit."))
    assert report(run_log.run) is None


def test_a_run_that_was_stopped_ends_the_work_that_reports(run_log: DatabaseRunLog) -> None:
    Run.objects.update(cancel_requested=True)
    with pytest.raises(Cancelled):
        run_log.progress("denoising", 3, 50)


def test_images_that_are_made_in_many_steps_are_stopped_between_two(
    owner: User, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    class Slow(tiny_lab.TinyGenerator):
        def generate(self, prompts: Any, seeds: Any, progress: Any = None) -> Any:
            for step in range(2_000):
                progress("drawing, denoising steps", step, 2_000)
                if not shown and (seen := report(run)):
                    shown.append(seen)
                    Run.objects.filter(pk=run.pk).update(cancel_requested=True)
                time.sleep(0.01)
            pytest.fail("the images were made to the end")

    shown: list[Any] = []
    install(monkeypatch, settings, tmp_path)
    monkeypatch.setattr(tiny_lab, "load_generator", lambda _: Slow())
    program = PROGRAM.format("tools.display(tools.text2image(['a red square']))")
    run = tiny_run(owner, Seeing(program, CONCLUSION))
    run = play(run)
    place.build_laboratory.cache_clear()
    assert [(seen["what"], seen["total"]) for seen in shown] == [("drawing, denoising steps", 2_000)]
    assert kinds(run) == ["started", "reply", "experiment", "cancelled"]
    assert run.status == Status.CANCELLED
    assert report(run) is None
    place.sandbox().close()
    place.build_sandbox.cache_clear()
