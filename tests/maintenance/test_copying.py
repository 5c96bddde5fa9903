"""Images carried to a bucket and back: resumed, true, and said; a bucket tried out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from experiments.core.bucket import Bucket
from experiments.maintenance import copying
from experiments.models import Image, Run
from tests.support.object_store import KEYS, READER, ObjectStore
from workers.errors import Cancelled

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]


@pytest.fixture
def use_bucket(object_store: ObjectStore, settings: Any, tmp_path: Path) -> Callable[..., Bucket]:
    """Has the installation keep its images in the bucket from now on."""

    def use(keys: tuple[str, str] = KEYS) -> Bucket:
        options = {"prefix": tmp_path.name, "endpoint": object_store.endpoint, "region": "us-east-1", "keys": keys}
        options |= {"bucket": object_store.bucket, "cache": (tmp_path / "cache", 1 << 30)}
        default = {"BACKEND": "experiments.core.bucket.Bucket", "OPTIONS": options}
        settings.STORAGES = settings.STORAGES | {"default": default}
        return copying.find_bucket()

    return use


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_what_was_stopped_goes_on_and_comes_back_the_same(
    played: Callable[[], Run],
    store: Path,
    use_bucket: Callable[..., Bucket],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played()
    before = files(store)
    assert len(before) >= 6
    bucket = use_bucket()
    monkeypatch.setattr(copying, "_AT_ONCE", 2)

    def stop(what: str, done: int, total: int) -> None:
        assert total == len(before)
        if done == 3:
            raise Cancelled(what)

    with pytest.raises(Cancelled):
        copying.copy(stop)
    there = len(list(bucket.list_names()))
    assert 3 <= there < len(before)
    call_command("storage", "copy", "--check")
    said = capsys.readouterr().out
    assert f"{len(before) - there} files copied" in said
    assert f"{there} were there before" in said
    assert "Every image is what its key says." in said
    call_command("storage", "copy")
    assert "0 files copied" in capsys.readouterr().out
    for path in store.rglob("*.*"):
        path.unlink()
    call_command("storage", "copy", "--back")
    assert files(store) == before


def test_a_lost_image_is_found_though_it_is_in_the_cache(
    played: Callable[[], Run], use_bucket: Callable[..., Bucket], capsys: pytest.CaptureFixture[str], settings: Any
) -> None:
    bucket = use_bucket()
    played()
    call_command("verify")
    lost = Image.objects.order_by("key")[0].key
    bucket.delete(Image.path_of(lost))
    use_bucket()
    with pytest.raises(CommandError, match="wrong"):
        call_command("verify")
    assert lost[:12] in capsys.readouterr().out
    del settings


def test_a_bucket_is_tried_out(use_bucket: Callable[..., Bucket], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match=r"Name a bucket first: MAIA_STORAGE=s3://bucket"):
        call_command("storage", "check")
    bucket = use_bucket()
    call_command("storage", "check")
    assert "keeps what was written first" in capsys.readouterr().out
    assert list(bucket.list_names()) == []
    use_bucket(READER)
    with pytest.raises(CommandError, match="Let the installation's keys read, write and list"):
        call_command("storage", "check")
