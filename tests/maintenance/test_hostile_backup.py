"""A backup whose hashes are right, and whose rows or images are not: one sentence names what it is, nothing is kept."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from experiments.maintenance import row_format
from experiments.maintenance.backup_format import LINE, BackupError
from experiments.maintenance.restoring import restore_backup
from experiments.models import Image, Run
from tests.support.backup_files import RUNS, empty, ignore, members, sealed, with_runs
from workers.jobs.images import key_of_file

pytestmark = pytest.mark.django_db(transaction=True)


def change_run(column: str, written: str) -> Callable[[list[bytes]], bytes]:
    """The first run with another value, as JSON writes it."""

    def make(lines: list[bytes]) -> bytes:
        place, row = json.loads(lines[0]).index(column), json.loads(lines[1])
        row[place] = "HERE"
        return json.dumps(row).replace('"HERE"', written).encode()

    return make


ROWS: list[tuple[str, Callable[[list[bytes]], bytes], str]] = [
    ("deep", lambda _: b"[" * 200_000, "more than 65,536 bytes outside its texts"),
    ("less deep", lambda _: b"[" * 60_000, "RecursionError"),
    ("deep column", change_run("options", json.dumps("[" * 60_000)), "RecursionError"),
    ("wide", lambda _: b"[" + b"0," * 99_999 + b"0]", "more than 65,536 bytes outside its texts"),
    ("number", change_run("prompt_tokens", "1" + "0" * 30), "prompt_tokens is a larger number than a database keeps"),
    ("2^63", change_run("seed", str(2**63)), "seed is a larger number than a database keeps"),
    ("-10^30", change_run("seed", "-1" + "0" * 30), "seed is a larger number than a database keeps"),
    ("float", change_run("cost", "1" + "0" * 400), "OverflowError"),
    ("date", change_run("created", '"0001-01-01T00:00+14:00"'), "OverflowError"),
    ("digits", change_run("seed", "9" * 5_000), "ValueError"),
    ("no JSON", lambda _: b"{", "ValueError|JSONDecodeError"),
    ("no list", lambda _: b"7", "it is no list"),
    ("short", lambda _: b"[1, 2]", "ValueError"),
]


@pytest.mark.parametrize(("make", "said"), [each[1:] for each in ROWS], ids=[each[0] for each in ROWS])
def test_a_row_that_is_not_right_is_named_in_one_sentence(
    backup: Path, make: Callable[[list[bytes]], bytes], said: str
) -> None:
    wrong = with_runs(backup, make(gzip.decompress(members(backup)[RUNS]).splitlines()))
    empty()
    with pytest.raises(BackupError, match=f"^Row 1 of experiments_run is not right \\(.*({said}).*\\)[.]$"):
        restore_backup(wrong, ignore, key_of_file)
    assert (User.objects.count(), Run.objects.count()) == (0, 0)


def test_a_row_is_bounded_and_so_is_what_is_held_at_once(backup: Path) -> None:
    """A few kilobytes of gzip unfold to any length."""
    wrong = with_runs(backup, b"x" * (LINE + 1))
    assert wrong.stat().st_size < backup.stat().st_size + 400_000
    empty()
    with pytest.raises(BackupError, match=r"^Row 1 of experiments_run has more than 128 MiB"):
        restore_backup(wrong, ignore, key_of_file)
    some = list(row_format._split_by_size([b"x" * (20 << 20)] * 5))
    assert [len(each) for each in some] == [2, 2, 1]
    assert [len(each) for each in row_format._split_by_size([b"[]"] * 2_001)] == [1_000, 1_000, 1]


def test_an_image_that_is_not_what_its_key_says_is_left_out(backup: Path, store: Path, tmp_path: Path) -> None:
    parts, script = members(backup), b"<script>alert(1)</script>"
    first, second = [name for name in parts if name.startswith("images/")][:2]
    wrong = sealed(backup, {**parts, first: script, second: parts[first]})
    count = Image.objects.count()
    empty()
    shutil.rmtree(store)
    left = restore_backup(wrong, ignore, key_of_file).left_out
    assert [each.split(":")[0] for each in left] == [f"{first} is left out", f"{second} is left out"]
    assert "holds no image" in left[0]
    assert "holds other pixels" in left[1]
    assert len([*store.rglob("*.png")]) == count - 2
    assert not any(path.read_bytes() == script for path in store.rglob("*.png"))
