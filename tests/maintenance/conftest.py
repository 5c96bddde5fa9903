"""The tiny laboratory, runs that the real agent played there, and an image store of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.db import connection

from experiments.core import notify
from experiments.core.actors import Actor
from experiments.maintenance.backup import write_backup
from experiments.models import Run
from experiments.runs.steering import actions
from tests.support.backup_files import ignore
from tests.support.builders import make_run
from tests.support.tiny_run import CONCLUSION, PROGRAM, Seeing, install, play, tiny_run
from workers.jobs import laboratory as place
from workers.jobs import thumbnails
from workers.record.limits import Usage

LOOK = PROGRAM.format(
    "activations, images = system.neuron(tools.text2image(['a red square', 'a blue square', 'a green square']))\n"
    "tools.log_experiment(activations, images, ['red', 'blue', 'green'], '')"
)
SEEN = ("A red square.", "Nothing.") * 6


@pytest.fixture
def store(settings: Any, tmp_path: Path) -> Path:
    """The folder of image files."""
    settings.MEDIA_ROOT = tmp_path / "images"
    assert Path(default_storage.path("x")).parent == tmp_path / "images"
    return tmp_path / "images"


@pytest.fixture
def played(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path, store: Path, owner: User
) -> Iterator[Callable[[], Run]]:
    """Makes a run that the agent played to its conclusion: two rounds, an experiment with three images."""
    del store
    install(monkeypatch, settings, tmp_path)

    def play_one() -> Run:
        run = play(tiny_run(owner, Seeing(LOOK, CONCLUSION, sentences=SEEN, usage=Usage(100, 20, 0.5))))
        thumbnails.mark_made(wait=True)
        return run

    notify.muted.set()
    yield play_one
    place.build_laboratory.cache_clear()
    notify.muted.clear()


@pytest.fixture
def backup(played: Callable[[], Run], tmp_path: Path, owner: User) -> Path:
    """Of an installation with a run that was played, one with odd options, and an entry of the audit."""
    played()
    odd = make_run(owner, question="é \U0001f600 “quoted”\nand a line")
    Run.objects.filter(pk=odd.pk).update(cost=1e-17)
    with connection.cursor() as cursor:  # not the shape that its readers want, and kept all the same
        cursor.execute("UPDATE experiments_run SET options = %s WHERE id = %s", ['{"dataset": 7}', odd.pk])
    actions.stop(Actor(owner), odd.pk)
    write_backup(tmp_path / "one.maia", ignore)
    return tmp_path / "one.maia"
