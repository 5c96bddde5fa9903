"""Images in a bucket of a real store: written once, read whole or not at all, kept near within a bound; and what people
are told when the store is away, slow, cut off, closed or not there."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.test import Client

from experiments.core import bucket as buckets
from experiments.core import transfers
from experiments.core.bucket import Bucket
from experiments.core.sweep_totals import explain_wait
from experiments.models import Export, Image, Job, Run
from tests.support.builders import make_run
from tests.support.line import Line
from tests.support.object_store import KEYS, READER, ObjectStore
from tests.support.tiny_run import CONCLUSION, LOOK, Seeing, install, kinds, tiny_run
from workers.errors import Outage
from workers.jobs import laboratory as place
from workers.jobs import lease, long, rounds

pytestmark = pytest.mark.timeout(180)
SMALL = 64 << 10


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "READ_SECONDS", 5)
    monkeypatch.setattr(buckets, "CONNECT_SECONDS", 5)
    monkeypatch.setattr(buckets, "_ATTEMPTS", 1)


def options(
    object_store: ObjectStore,
    folder: Path,
    cache: int = 0,
    *,
    keys: tuple[str, str] = KEYS,
    name: str = "",
    port: int = 0,
) -> dict[str, Any]:
    endpoint = f"http://127.0.0.1:{port}" if port else object_store.endpoint
    return {
        "bucket": name or object_store.bucket,
        "prefix": folder.name,
        "endpoint": endpoint,
        "region": "us-east-1",
        "keys": keys,
        "cache": (folder / "cache", cache),
    }


def made(object_store: ObjectStore, folder: Path, cache: int = 0, **changes: Any) -> Bucket:
    return Bucket(**options(object_store, folder, cache, **changes))


def content(kept: Bucket, name: str) -> bytes:
    with kept.open(name) as file:
        return file.read()


def test_of_several_writers_of_a_key_the_first_stays(object_store: ObjectStore, tmp_path: Path) -> None:
    kept = made(object_store, tmp_path)
    together = threading.Barrier(4)

    def write(number: int) -> None:
        together.wait()
        kept.save("ab/race.png", ContentFile(bytes([number]) * SMALL))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    first = content(kept, "ab/race.png")
    assert first == first[:1] * SMALL
    kept.save("ab/race.png", ContentFile(b"later"))
    assert content(kept, "ab/race.png") == first
    assert [name for name, _, _ in kept.list_names()] == ["ab/race.png"]
    kept.delete("ab/race.png")
    assert not kept.exists("ab/race.png")
    with pytest.raises(FileNotFoundError):
        kept.open("ab/race.png")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"keys": ("nobody", "knows")}, "MAIA_S3_ACCESS_KEY"),
        ({"keys": (KEYS[0], "wrong")}, "MAIA_S3_SECRET_KEY"),
        ({"keys": READER}, "Let the installation's keys read, write"),
        ({"name": "nowhere-at-all"}, "no bucket 'nowhere-at-all'"),
    ],
)
def test_what_the_store_refuses_is_said_with_its_remedy(
    object_store: ObjectStore, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(Outage, match=words):
        made(object_store, tmp_path, **changes).save("ab/one.png", ContentFile(b"x"))
    if "name" in changes:
        with pytest.raises(Outage, match=words):
            made(object_store, tmp_path, **changes).ask()


def test_who_may_read_alone_reads(object_store: ObjectStore, tmp_path: Path) -> None:
    made(object_store, tmp_path).save("ab/one.png", ContentFile(b"x"))
    reader = made(object_store, tmp_path, keys=READER)
    reader.ask()
    assert content(reader, "ab/one.png") == b"x"


@pytest.mark.usefixtures("impatient")
def test_a_store_that_is_slow_or_gone_is_an_outage(object_store: ObjectStore, tmp_path: Path) -> None:
    kept = made(object_store, tmp_path)
    kept.save("ab/one.png", ContentFile(b"x"))
    object_store.signal(signal.SIGSTOP)
    try:
        with pytest.raises(Outage, match=r"does not answer.*resumes by itself"):
            content(kept, "ab/one.png")
    finally:
        object_store.signal(signal.SIGCONT)
    assert content(kept, "ab/one.png") == b"x"
    with pytest.raises(Outage, match="does not answer"):
        made(object_store, tmp_path, port=1).ask()


@pytest.mark.usefixtures("impatient")
def test_a_body_that_is_cut_off_is_no_image(object_store: ObjectStore, tmp_path: Path) -> None:
    """Neither returned nor kept in the cache."""
    line = Line(object_store.port)
    try:
        kept = made(object_store, tmp_path, 100 << 20, port=line.port)
        data = bytes(range(256)) * 4096
        kept.save("ab/large.png", ContentFile(data))
        line.most = 300_000
        with pytest.raises(Outage, match=r"broke off|does not answer"):
            content(kept, "ab/large.png")
        line.mend()
        assert content(kept, "ab/large.png") == data
    finally:
        line.close()


@pytest.mark.usefixtures("impatient")
def test_what_was_read_once_is_near_within_the_bound(object_store: ObjectStore, tmp_path: Path) -> None:
    line = Line(object_store.port)
    most = 40 * SMALL
    near, far = made(object_store, tmp_path, most, port=line.port), made(object_store, tmp_path)
    for number in range(60):
        far.save(f"ab/{number}.png", ContentFile(bytes([number]) * SMALL))
        assert content(near, f"ab/{number}.png") == bytes([number]) * SMALL
    held = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert SMALL * 20 < sum(path.stat().st_size for path in held) <= most + most // 20
    line.close()
    assert content(near, "ab/59.png") == bytes([59]) * SMALL, "another process finds it too"
    with pytest.raises(Outage):
        content(near, "ab/0.png")
    near.look_past_cache()
    with pytest.raises(Outage):
        content(near, "ab/59.png")


@pytest.fixture
def in_bucket(object_store: ObjectStore, settings: Any, tmp_path: Path) -> Bucket:
    use(settings, options(object_store, tmp_path))
    found = storages["default"]
    assert isinstance(found, Bucket)
    return found


def use(settings: Any, given: dict[str, Any]) -> None:
    """Have the installation keep its images there."""
    settings.STORAGES = settings.STORAGES | {"default": {"BACKEND": "experiments.core.bucket.Bucket", "OPTIONS": given}}


@pytest.mark.django_db(transaction=True)
def test_a_page_shows_it_to_whoever_may_see_it(
    in_bucket: Bucket, as_owner: Client, object_store: ObjectStore, settings: Any, tmp_path: Path
) -> None:
    key = "ab" + "0" * 62
    in_bucket.save(Image.path_of(key), ContentFile(b"a picture"))
    answer = as_owner.get(f"/images/{key}.png")
    assert (answer.status_code, answer.content) == (200, b"a picture")
    assert answer.headers["Cache-Control"] == "private, max-age=31536000, immutable"
    assert Client().get(f"/images/{key}.png").status_code in (302, 403)
    assert as_owner.get(f"/images/{'cd' + '0' * 62}.png").status_code == 404
    use(settings, options(object_store, tmp_path, keys=(KEYS[0], "wrong")))
    answer = as_owner.get(f"/images/{key}.png")
    assert answer.status_code == 503
    assert "no-store" in answer.headers["Cache-Control"]
    assert b"MAIA_S3" not in answer.content, "that is for who operates it"


@pytest.mark.usefixtures("in_bucket")
def test_files_that_are_exchanged_lie_there_too(settings: Any, tmp_path: Path) -> None:
    settings.STATE = tmp_path / "state"
    settings.STATE.mkdir()
    (transfers.waiting_folder() / "made").write_bytes(b"rows" * 1_000_000)
    transfers.move_file(transfers.waiting_folder() / "made", "exports/3.csv")
    assert transfers.file_exists("exports/3.csv")
    with transfers.fetch("exports/3.csv") as path:
        assert path.read_bytes() == b"rows" * 1_000_000
    with transfers.stream("exports/3.csv") as file:
        assert file.read(8) == b"rowsrows"
    assert list(transfers.waiting_folder().iterdir()) == []
    transfers.remove_others("exports", set(), seconds=3600)
    assert transfers.file_exists("exports/3.csv")
    transfers.remove_others("exports", {"3.csv"}, seconds=-60)
    assert transfers.file_exists("exports/3.csv")
    transfers.remove_others("exports", set(), seconds=-60)
    assert not transfers.file_exists("exports/3.csv")


@pytest.mark.usefixtures("redis_url")
@pytest.mark.django_db(transaction=True)
def test_an_export_waits_for_the_right_keys_too(
    owner: User, object_store: ObjectStore, settings: Any, tmp_path: Path
) -> None:
    settings.STATE = tmp_path
    make_run(owner, status="concluded")
    use(settings, options(object_store, tmp_path, keys=(KEYS[0], "wrong")))
    job = Job.objects.create(kind="export", asked_by=owner)
    export = Export.objects.create(job=job, what="runs", format="csv")
    status, words = long.outcome(job)
    assert status == "queued"
    assert "MAIA_S3_SECRET_KEY" in words
    use(settings, options(object_store, tmp_path))
    assert long.outcome(job)[0] == "done"
    with transfers.fetch(export.place) as path:
        assert b"concluded" in path.read_bytes()


@pytest.mark.usefixtures("redis_url")
@pytest.mark.django_db(transaction=True)
def test_a_run_waits_for_the_right_keys_and_goes_on(
    owner: User, object_store: ObjectStore, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply is kept, so the backbone is not asked again; the experiment alone is repeated."""
    install(monkeypatch, settings, tmp_path)
    place.build_laboratory.cache_clear()
    use(settings, options(object_store, tmp_path, keys=(KEYS[0], "wrong")))
    backbone = Seeing(LOOK, CONCLUSION, sentences=("A red square.", "A blue square.") * 9)
    run = tiny_run(owner, backbone)

    def play() -> Run:
        claimed = lease.claim(run.pk)
        assert claimed
        rounds.execute_claimed(claimed)
        return Run.objects.get(pk=run.pk)

    for _ in range(4):
        assert "MAIA_S3_SECRET_KEY" in explain_wait(play())
    use(settings, options(object_store, tmp_path))
    while play().status == "running":
        pass
    assert kinds(run) == ["started", "reply", "experiment", "result", "reply", "concluded"]
    assert backbone.asked == [1, 2]
