"""What a backup holds comes back as it was, on either database; a file that is not right changes nothing."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection

from experiments.core import code_version, transcript
from experiments.core.search_index import backend
from experiments.maintenance.backup import write_backup
from experiments.maintenance.backup_format import BackupError, Manifest, hold_lock
from experiments.maintenance.restoring import restore_backup
from experiments.maintenance.verification import find_problems
from experiments.models import Event, Image, Layer, Observation, Run, SearchText, TextKind, VisionModelRow
from tests import ROOT
from tests.support.backup_files import RUNS, Members, empty, ignore, members, pack, with_runs
from tests.support.backup_rows import read_rows
from tests.support.builders import make_run, started
from workers.jobs.images import key_of_file

pytestmark = pytest.mark.django_db(transaction=True)
Played = Callable[[], Run]


def test_everything_comes_back_as_it_was(backup: Path, tmp_path: Path, store: Path, settings: Any) -> None:
    counts = {each: each.objects.count() for each in (Run, Event, Observation, Image, SearchText)}
    empty()
    settings.MEDIA_ROOT = tmp_path / "elsewhere"
    made = restore_backup(backup, ignore, key_of_file).manifest
    assert made.images == counts[Image] >= 3
    assert {each: each.objects.count() for each in counts} == counts
    assert find_problems(key_of_file) == []
    write_backup(tmp_path / "two.maia", ignore)
    assert read_rows(tmp_path / "two.maia") == read_rows(backup)
    assert set(members(backup)) == set(members(tmp_path / "two.maia"))
    assert store.exists()


def test_what_is_back_is_found_and_goes_on(backup: Path, owner: User) -> None:
    last = Run.objects.order_by("pk").last()
    assert last is not None
    empty()
    restore_backup(backup, ignore, key_of_file)
    assert SearchText.objects.filter(run__isnull=False).exists()
    user = User.objects.get(username=owner.username)
    words = SearchText.objects.filter(kind=TextKind.QUESTION, run=last.pk)
    assert list(backend.get_backend().filter_matches(words, ["and a line"])) == list(words)
    fresh = make_run(user)
    assert fresh.pk > last.pk
    transcript.append(fresh.pk, "started", started())
    assert find_problems(None) == []


def test_it_is_for_its_owner_alone_and_holds_no_sessions(backup: Path) -> None:
    assert backup.stat().st_mode & 0o777 == 0o600
    names = set(members(backup))
    assert "rows/auth_user.jsonl.gz" in names
    assert not names & {"rows/experiments_session.jsonl.gz", "rows/experiments_loginlink.jsonl.gz"}
    assert list(backup.parent.glob(".*part")) == []


def test_it_is_of_one_moment_while_others_write(played: Played, tmp_path: Path, owner: User) -> None:
    played()
    wrote: list[int] = []

    def write_meanwhile(what: str, done: int, total: int) -> None:
        """Somebody else writes between two tables, and is kept waiting by nobody."""

        def write() -> None:
            wrote.append(make_run(owner).pk)
            transcript.append(wrote[-1], "started", started())
            connection.close()

        if what == "Tables" and done % 20 == 1:
            (thread := threading.Thread(target=write)).start()
            thread.join(60)

    made = write_backup(tmp_path / "one.maia", write_meanwhile)
    assert len(wrote) >= 3
    assert made.rows["experiments_run"] == 1
    found = read_rows(tmp_path / "one.maia")
    assert {each["run_id"] for each in found["rows/experiments_event.jsonl.gz"]} & set(wrote) == set()


def test_without_images_their_rows_come_alone(played: Played, tmp_path: Path) -> None:
    played()
    made = write_backup(tmp_path / "one.maia", ignore, images=False)
    assert made.images is None
    assert [name for name in members(tmp_path / "one.maia") if name.startswith("images/")] == []
    empty()
    restore_backup(tmp_path / "one.maia", ignore, key_of_file)
    assert find_problems(key_of_file) == []  # the store is where it was


def test_an_image_that_is_lost_is_counted_and_the_rest_is_kept(played: Played, tmp_path: Path, store: Path) -> None:
    played()
    keys = sorted(Image.objects.values_list("key", flat=True))
    (store / Image.path_of(keys[0])).unlink()
    made = write_backup(tmp_path / "one.maia", ignore)
    assert (made.images, made.lost) == (len(keys) - 1, 1)
    empty()
    assert restore_backup(tmp_path / "one.maia", ignore, key_of_file).manifest.images == len(keys) - 1


def test_nobody_restores_into_an_installation_that_holds_runs_or_people(backup: Path) -> None:
    with pytest.raises(BackupError, match=r"holds 2 runs, 1 people, .* Name an empty place"):
        restore_backup(backup, ignore, key_of_file)
    assert Run.objects.count() == 2


def change(parts: Members, name: str, **fields: Any) -> Members:
    return {**parts, name: json.dumps({**json.loads(parts[name]), **fields}).encode()}


def flip(data: bytes) -> bytes:
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


def without(parts: Members, name: str) -> Members:
    return {key: data for key, data in parts.items() if key != name}


def image_of(parts: Members) -> str:
    return next(name for name in parts if name.startswith("images/"))


WRONG: list[tuple[str, Callable[[Members], Members], str]] = [
    ("format", lambda parts: change(parts, "format.json", version=9), "format 'maia-backup' 9; this version reads"),
    ("schema", lambda parts: change(parts, "format.json", schema="0003_old"), "Restore it with a version whose newest"),
    ("head", lambda parts: {**parts, "format.json": b"[]"}, "format.json is none of a backup"),
    ("no head", lambda parts: without(parts, "format.json"), "has no format.json: it is no backup"),
    ("no end", lambda parts: without(parts, "manifest.json"), "no manifest.json at its end: it was cut"),
    ("row", lambda parts: {**parts, RUNS: flip(parts[RUNS])}, f"{RUNS} is not as it was written"),
    (
        "image",
        lambda parts: {**parts, image_of(parts): flip(parts[image_of(parts)])},
        "images is not as it was written",
    ),
    ("no image", lambda parts: without(parts, image_of(parts)), "images of "),
    ("no table", lambda parts: without(parts, RUNS), "The table experiments_run is in the backup or here"),
    ("another table", lambda parts: {"rows/other.jsonl.gz": b"", **parts}, "The table other is in the backup or here"),
    ("path", lambda parts: {"../../escape": b"x", **parts}, "'../../escape' belongs to no backup"),
    ("absolute", lambda parts: {"/etc/cron.d/x": b"x", **parts}, "belongs to no backup"),
    ("image path", lambda parts: {"images/../../x.png": b"x", **parts}, "belongs to no backup"),
]


@pytest.mark.parametrize(("make", "said"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_a_file_that_is_not_right_is_refused_before_anything_is_written(
    backup: Path, tmp_path: Path, settings: Any, make: Callable[[Members], Members], said: str
) -> None:
    wrong = pack(tmp_path / "wrong.maia", make(members(backup)))
    empty()
    settings.MEDIA_ROOT = tmp_path / "elsewhere"
    with pytest.raises(BackupError, match=said.replace("(", "[(]")):
        restore_backup(wrong, ignore, key_of_file)
    assert (User.objects.count(), Run.objects.count()) == (0, 0)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_links_and_other_odd_members_are_refused(backup: Path, tmp_path: Path, kind: bytes) -> None:
    wrong = pack(tmp_path / "wrong.maia", {**members(backup), f"images/{'a' * 64}.png": b""}, kind=kind)
    empty()
    with pytest.raises(BackupError, match="is no ordinary file"):
        restore_backup(wrong, ignore, key_of_file)


def test_a_file_that_is_cut_or_no_archive_is_refused(backup: Path, tmp_path: Path) -> None:
    whole = backup.read_bytes()
    empty()
    for size in (0, 700, len(whole) // 2, len(whole) - 12_000):
        (tmp_path / "cut.maia").write_bytes(whole[:size])
        with pytest.raises(BackupError):
            restore_backup(tmp_path / "cut.maia", ignore, key_of_file)
    (tmp_path / "cut.maia").write_bytes(b"no archive" * 1000)
    with pytest.raises(BackupError, match=r"is no backup of MAIA Web, or it was cut"):
        restore_backup(tmp_path / "cut.maia", ignore, key_of_file)
    assert User.objects.count() == 0


def test_rows_that_the_database_refuses_leave_nothing(backup: Path, tmp_path: Path) -> None:
    """A file whose hashes are right, and whose rows refer to what is not there."""
    columns, *lines = gzip.decompress(members(backup)[RUNS]).splitlines()
    place = json.loads(columns).index("owner_id")
    changed = [[9_999 if at == place else value for at, value in enumerate(json.loads(line))] for line in lines]
    wrong = with_runs(backup, *(json.dumps(row).encode() for row in changed))
    empty()
    VisionModelRow.objects.create(name="kept")
    with pytest.raises(BackupError, match="The database does not take what is in the file"):
        restore_backup(wrong, ignore, key_of_file)
    assert (User.objects.count(), VisionModelRow.objects.count()) == (0, 1)


def test_what_workers_wrote_down_before_gives_way(backup: Path) -> None:
    layers = Layer.objects.count()
    empty()
    model = VisionModelRow.objects.create(name="of this place")
    Layer.objects.create(model=model, position=0, name="a", kind="conv", units=3)
    restore_backup(backup, ignore, key_of_file)
    assert (Layer.objects.count(), VisionModelRow.objects.filter(name="of this place").count()) == (layers, 0)


def test_one_at_a_time(played: Played, tmp_path: Path) -> None:
    played()
    said: list[str] = []

    def try_beside() -> None:
        try:
            write_backup(tmp_path / "two.maia", ignore)
        except BackupError as error:
            said.append(str(error))
        connection.close()

    with hold_lock():
        (thread := threading.Thread(target=try_beside)).start()
        thread.join(60)
    assert said == ["A backup, or manage.py prune, is under way here: try again when it is done."]
    assert isinstance(write_backup(tmp_path / "two.maia", ignore), Manifest)
    with pytest.raises(BackupError, match="is there already"):
        write_backup(tmp_path / "two.maia", ignore)


def test_the_commands_take_it_to_another_installation(backup: Path, migrated: Path, tmp_path: Path) -> None:
    """Of whatever database this is to a fresh SQLite, in processes of their own."""
    from tests.support.state_folders import with_tables

    (state := tmp_path / "fresh").mkdir()
    with_tables(migrated, state)
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}

    def manage(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *words]
        environment = own | {"MAIA_STATE": str(state)}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    restored = manage("restore", str(backup))
    assert restored.returncode == 0, restored.stderr
    assert "images are back. Look: manage.py verify." in restored.stdout
    looked = manage("verify")
    assert (looked.returncode, looked.stdout.split(":")[0]) == (0, "All is well"), looked.stdout + looked.stderr
    again = manage("backup", str(tmp_path / "two.maia"))
    assert again.returncode == 0, again.stderr
    assert read_rows(tmp_path / "two.maia") == read_rows(backup)
    refused = manage("restore", str(backup))
    assert refused.returncode == 1
    assert "This database holds 2 runs" in refused.stderr


def test_the_commands_say_what_is_wrong_with_a_path(tmp_path: Path, db: None) -> None:
    with pytest.raises(CommandError, match=r"nowhere\.maia cannot be read: No such file"):
        call_command("restore", str(tmp_path / "nowhere.maia"))
    with pytest.raises(CommandError, match=r"cannot be written: No such file"):
        call_command("backup", str(tmp_path / "no" / "where.maia"))
    assert code_version.newest_migration()
