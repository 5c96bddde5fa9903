"""What nobody needs is found and removed, in two steps; what anything refers to stays, wherever it is referred to."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import models
from django.utils import timezone
from PIL import Image as Pillow

from experiments.maintenance import pruning
from experiments.maintenance.backup_format import BackupError, hold_lock
from experiments.models import Comment, HumanReply, Image, Observation, Run, Thread
from tests.support.builders import make_run
from workers.jobs.images import ImagesInDatabase
from workers.protocols import Provenance
from workers.record.origins import Origin

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]
LONG_AGO = timedelta(days=90)


def ignore(*_: object) -> None:
    """No progress is shown."""


def keep_image(shade: int, **known: Any) -> str:
    """An image that nothing refers to, stored long ago."""
    memory = ImagesInDatabase()
    key = memory.remember(Pillow.new("RGB", (8, 8), (shade, 0, 0)), Provenance(Origin.GENERATED, "red", **known))
    memory.flush()
    Image.objects.filter(key=key).update(created=timezone.now() - LONG_AGO)
    return key


def prune(days: float = 30, *, dry: bool = False) -> pruning.Pruned:
    return pruning.prune(days, ignore, dry=dry)


def a_day_passes() -> None:
    for image in Image.objects.exclude(unused_since=None):
        Image.objects.filter(pk=image.pk).update(unused_since=image.unused_since - timedelta(days=1, minutes=1))


def test_an_unused_image_goes_in_two_steps_and_a_run_stays_whole(
    played: Callable[[], Run], store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played()
    Image.objects.update(created=timezone.now() - LONG_AGO)
    key = keep_image(200)
    before = set(Image.objects.values_list("key", flat=True))
    call_command("prune")
    assert "1 images that nothing refers to would be marked" in capsys.readouterr().out
    assert not Image.objects.exclude(unused_since=None).exists()
    call_command("prune", "--yes")
    call_command("prune", "--yes")
    assert set(Image.objects.values_list("key", flat=True)) == before, "nobody is surprised within a day"
    a_day_passes()
    assert prune(dry=True).removed == 1
    call_command("prune", "--yes")
    assert "Removed: 1 images" in capsys.readouterr().out
    assert set(Image.objects.values_list("key", flat=True)) == before - {key}
    assert not (store / Image.path_of(key)).exists()
    call_command("verify")


def test_what_a_worker_comes_upon_again_stays(store: Path) -> None:
    key = keep_image(200)
    prune()
    a_day_passes()
    assert ImagesInDatabase().recall(key) is not None
    assert prune().removed == 0
    assert Image.objects.get(key=key).unused_since is not None, "marked anew"
    a_day_passes()
    assert prune().removed == 1
    assert ImagesInDatabase().recall(key) is None
    assert keep_image(200) == key
    assert (store / Image.path_of(key)).exists()


def test_of_workers_who_store_what_is_removed_none_is_left_without_its_file(store: Path) -> None:
    """Whichever comes first, a row has its file."""
    keys = [keep_image(shade) for shade in range(1, 31)]
    prune()
    a_day_passes()
    together = threading.Barrier(2)

    def store_again() -> None:
        from django.db import connection

        together.wait()
        for shade in range(1, 31):
            keep_image(shade)
        connection.close()

    (thread := threading.Thread(target=store_again)).start()
    together.wait()
    prune()
    thread.join(60)
    there = set(Image.objects.values_list("key", flat=True))
    assert there == set(keys)
    assert [key for key in there if not (store / Image.path_of(key)).exists()] == []


@pytest.mark.parametrize("where", ["comment", "event", "observation", "original", "young"])
def test_what_anything_refers_to_stays(owner: User, store: Path, where: str) -> None:
    del store
    key, run = keep_image(200), make_run(owner)
    match where:
        case "comment":
            thread = Thread.objects.create(run=run, on="run")
            Comment.objects.create(thread=thread, author=owner, text=f"Look at /images/{key}/.")
        case "event":
            run.events.create(seq=1, kind="note", payload={"deep": [{"image": key}]})
        case "observation":
            experiment = run.experiments.create(number=1, round=1, seq=1, code="")
            Observation.objects.create(experiment=experiment, run=run, position=0, image_id=key, activation=1.0)
        case "original":
            edit = keep_image(100, original=key)
            run.events.create(seq=1, kind="note", payload={"image": edit})
        case "young":
            Image.objects.update(created=timezone.now())
    prune()
    a_day_passes()
    assert prune().removed == 0
    assert Image.objects.filter(key=key, unused_since=None).exists()


def test_no_column_that_may_hold_a_key_is_forgotten() -> None:
    read = {(model, column) for model, columns in pruning._list_sources() for column in columns}
    for model in apps.get_app_config("experiments").get_models(include_auto_created=True):
        for field in model._meta.concrete_fields:
            text = isinstance(field, models.TextField | models.JSONField)
            long = isinstance(field, models.CharField) and (field.max_length or 64) >= 64
            to_image = isinstance(field, models.ForeignKey) and field.related_model is Image
            if model is not Image and (text or long or to_image):
                assert (model, field.attname) in read


def test_files_of_no_image_go_once_they_are_old(store: Path) -> None:
    known = keep_image(200)
    for key, days in (("ab" + "0" * 62, 60), ("cd" + "0" * 62, 0)):
        path = store / Image.path_of(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"png")
        then = time.time() - days * 86400
        os.utime(path, (then, then))
    os.utime(store / Image.path_of(known), (1, 1))
    assert prune(dry=True).files == 1
    assert prune().files == 1
    assert not (store / Image.path_of("ab" + "0" * 62)).exists()
    assert (store / Image.path_of("cd" + "0" * 62)).exists()
    assert (store / Image.path_of(known)).exists()


def test_drafts_of_long_ago_go_and_what_was_sent_stays(owner: User, store: Path) -> None:
    del store
    old, run = timezone.now() - LONG_AGO, make_run(owner)
    HumanReply.objects.create(run=run, author=owner, round=1, saved=old, sent=old)
    HumanReply.objects.create(run=run, author=owner, round=2, saved=old)
    HumanReply.objects.create(run=run, author=owner, round=3)
    assert prune(dry=True).drafts == 1
    assert prune().drafts == 1
    assert set(HumanReply.objects.values_list("round", flat=True)) == {1, 3}


def test_nothing_is_pruned_while_a_backup_is_under_way(store: Path) -> None:
    del store
    said: list[str] = []

    def try_beside() -> None:
        try:
            prune()
        except BackupError as error:
            said.append(str(error))

    with hold_lock():
        (thread := threading.Thread(target=try_beside)).start()
        thread.join(60)
    assert said == ["A backup, or manage.py prune, is under way here: try again when it is done."]
