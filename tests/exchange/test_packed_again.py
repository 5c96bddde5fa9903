"""Bundles that people unpacked and packed again with the tools of their desktops."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from experiments.exchange.safe_zip import ExchangeError
from tests.support.bundles import brought, good_files, packed

pytestmark = pytest.mark.usefixtures("redis_url")

Rename = Callable[[str], str]
FINDER = (("__MACOSX/._run.json", b"\0\5\x16\7"), (".DS_Store", b"\0\0\0\1Bud1"))


def keep(name: str) -> str:
    return name


def into_folder(name: str) -> str:
    return f"run-1/{name}"


def with_backslashes(name: str) -> str:
    return name.replace("/", "\\")


@pytest.fixture
def good(owner: User, tmp_path: Path) -> Path:
    return packed(good_files(owner, tmp_path), tmp_path / "good.zip")


def again(good: Path, rename: Rename, more: Iterable[tuple[str, bytes]] = ()) -> Path:
    path = good.with_name("again.zip")
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(rename(name), source.read(name))
        for name, data in more:
            target.writestr(name, data)
    return path


@pytest.mark.parametrize(
    ("rename", "more"),
    [
        (keep, FINDER),
        (into_folder, ()),
        (into_folder, [("__MACOSX/run-1/._run.json", b"\0"), ("run-1/.DS_Store", b"\0"), ("run-1/images/", b"")]),
        (keep, [("images/", b"")]),
        (keep, [("Thumbs.db", b"x"), ("images/desktop.ini", b"x")]),
        (with_backslashes, ()),
    ],
    ids=["finder", "folder", "finder and folder", "entries of folders", "explorer", "backslashes"],
)
def test_a_bundle_that_was_packed_again_goes_in(
    good: Path, owner: User, rename: Rename, more: Iterable[tuple[str, bytes]]
) -> None:
    (taken,) = brought(again(good, rename, more), owner)
    assert taken.run.experiment_count == 1
    assert not taken.known


@pytest.mark.parametrize(
    ("rename", "more", "says"),
    [
        (keep, [("notes.txt", b"x")], "'notes.txt' is in the archive and not in manifest.json"),
        (lambda name: into_folder(into_folder(name)), (), "has no manifest.json"),
        (into_folder, [("other/x", b"x")], "has no manifest.json"),
        (with_backslashes, [("images\\..\\..\\x", b"x")], "is a path outside the archive"),
        (keep, [("__MACOSX/../../x", b"x")], "is a path outside the archive"),
    ],
)
def test_what_no_desktop_adds_is_refused(
    good: Path, owner: User, rename: Rename, more: Iterable[tuple[str, bytes]], says: str
) -> None:
    with pytest.raises(ExchangeError, match=says):
        brought(again(good, rename, more), owner)


def test_two_names_that_mean_one_file_are_refused(good: Path, owner: User) -> None:
    with pytest.raises(ExchangeError, match="in the archive twice"):
        brought(again(good, keep, [("people\\x", b""), ("people/x", b"")]), owner)


def test_a_file_that_was_changed_is_found_out(good: Path, owner: User) -> None:
    path = good.with_name("changed.zip")
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            target.writestr(into_folder(name), source.read(name) + (b" " if name == "run.json" else b""))
    with pytest.raises(ExchangeError, match=r"'run.json' is not what manifest.json says"):
        brought(path, owner)
