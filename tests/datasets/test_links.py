"""Folders whose images are links, or are there twice: the cache of the hub, curated folders, and what stays shut."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from tests.support.image_folders import opened, plain, reason
from workers import registry
from workers.datasets.folder import file_checks
from workers.errors import BrokenImage, Cancelled, MissingPart
from workers.protocols import LabSettings

REVISIONS = ("a" * 40, "b" * 40)


def linked(root, **settings):
    return registry.load(registry.DATASETS, f"links:{root}")(LabSettings(root.parent / "state", **settings))


def sources(dataset):
    return [dataset.source(at) for at in range(len(dataset))]


def add_to_snapshot(repository: Path, revision: str, name: str, colour: tuple[int, int, int]) -> None:
    """As `hf download` does: the file among the blobs, a relative link to it in the snapshot."""
    blobs, link = repository / "blobs", repository / "snapshots" / revision / name
    blobs.mkdir(parents=True, exist_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    plain(colour=colour).save(blobs / "part", "PNG")
    blob = blobs / hashlib.sha256((blobs / "part").read_bytes()).hexdigest()
    (blobs / "part").rename(blob)
    link.symlink_to(os.path.relpath(blob, link.parent))


@pytest.fixture
def repository(tmp_path):
    """Two revisions of a dataset; the branch main is at the first, though the second was fetched last."""
    path = tmp_path / "hub" / "datasets--owner--birds"
    for number in range(3):
        add_to_snapshot(path, REVISIONS[0], f"train/finch/{number}.png", (number, 0, 0))
    add_to_snapshot(path, REVISIONS[1], "train/gull.png", (0, 9, 0))
    (path / "refs").mkdir()
    (path / "refs" / "main").write_text(REVISIONS[0])
    return path


# --- the hub's cache ------------------------------------------------------------------------------------


def test_a_snapshot_of_the_hub_is_read_through_its_links(repository):
    dataset = opened(repository / "snapshots" / REVISIONS[0])
    assert (dataset.name, dataset.count(), len(dataset)) == ("owner/birds", 3, 3)
    assert [each.image.getpixel((0, 0)) for each in dataset] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    train = opened(repository / "snapshots" / REVISIONS[1] / "train")
    assert (train.name, sources(train), train[0].image.getpixel((0, 0))) == (
        "owner/birds/train",
        ["gull.png"],
        (0, 9, 0),
    )


def test_a_repository_stands_for_its_main_branch_else_its_newest_snapshot(repository):
    assert sources(opened(repository)) == [f"train/finch/{number}.png" for number in range(3)]
    os.utime(repository / "snapshots" / REVISIONS[0], ns=(0, 0))
    for main in (None, REVISIONS[1], "../../../elsewhere", "\udcff"):
        (repository / "refs" / "main").unlink(missing_ok=True)
        if main:
            (repository / "refs" / "main").write_bytes(os.fsencode(main))
        assert sources(opened(repository)) == ["train/gull.png"]


def test_links_of_a_snapshot_lead_to_its_own_blobs_alone(repository):
    snapshot = repository / "snapshots" / REVISIONS[0]
    plain().save(repository.parent / "secret.png")
    (snapshot / "out.png").symlink_to(repository.parent / "secret.png")
    other = shutil.copytree(repository, repository.parent / "datasets--other--birds", symlinks=True)
    (snapshot / "other.png").symlink_to(next((other / "blobs").iterdir()))
    dataset = opened(repository)
    assert (dataset.count(), len(dataset)) == (3, 5)
    assert "other.png: it is a link that leads out" in reason(dataset, 0)
    assert "out.png: it is a link that leads out" in reason(dataset, 1)


@pytest.mark.parametrize("name", ["birds", "datasets--", "spoons--owner--birds"])
def test_what_only_looks_like_the_cache_of_the_hub_gets_no_more(repository, name):
    other = repository.parent / name
    shutil.copytree(repository, other, symlinks=True)
    with pytest.raises(MissingPart, match="it is a link that leads out of the folder"):
        opened(other / "snapshots" / REVISIONS[0]).count()


# --- links that are allowed -----------------------------------------------------------------------------


@pytest.fixture
def curated(tmp_path):
    """A folder of links into an archive: of a whole class, and of single files."""
    archive, folder = tmp_path / "archive" / "dogs", tmp_path / "curated"
    archive.mkdir(parents=True)
    (folder / "cats").mkdir(parents=True)
    for number in range(3):
        plain(colour=(number, 0, 0)).save(archive / f"{number}.png")
    plain(colour=(0, 9, 0)).save(folder / "cats" / "own.png")
    plain(colour=(0, 0, 9)).save(tmp_path / "archive" / "cat.png")
    (folder / "cats" / "linked.png").symlink_to(tmp_path / "archive" / "cat.png")
    (folder / "dogs").symlink_to(archive)
    return folder


def test_links_out_of_a_folder_are_followed_where_that_is_allowed(curated):
    assert opened(curated).count() == 1
    dataset = linked(curated)
    assert sources(dataset) == ["cats/linked.png", "cats/own.png", "dogs/0.png", "dogs/1.png", "dogs/2.png"]
    assert dataset.count() == len(list(dataset)) == 5


def test_folders_that_lead_in_circles_are_listed_once(curated):
    (curated / "again").symlink_to(curated)
    (curated / "cats" / "up").symlink_to("..")
    (curated / "more dogs").symlink_to(curated.parent / "archive")
    (curated / "loop").symlink_to("loop")
    (curated / "gone.png").symlink_to("nowhere")
    (curated / "passwords").symlink_to("/etc/passwd")
    (curated / "memory").symlink_to("/dev/zero")
    dataset = linked(curated)
    assert dataset.count() == 5
    left = {
        dataset.source(at): reason(dataset, at).partition(": ")[2] for at in range(len(dataset)) if not ok(dataset, at)
    }
    assert left.pop("passwords").startswith("it is no JPEG")
    assert left.pop("memory") == "it is no file but a device, a pipe or a socket."
    assert left.pop("gone.png") == "it cannot be read (No such file or directory)."
    assert left.pop("loop") == "it cannot be read (Too many levels of symbolic links)."
    assert set(left.values()) == {"it is the same file as cats/linked.png."}


def ok(dataset, at):
    try:
        dataset[at]
    except BrokenImage:
        return False
    return True


def test_a_change_of_what_a_link_leads_to_is_another_revision(curated):
    before = linked(curated).revision
    assert linked(curated).revision == before
    plain(colour=(7, 7, 7)).save(curated.parent / "archive" / "dogs" / "1.png")
    changed = linked(curated).revision
    plain(colour=(8, 7, 7)).save(curated.parent / "archive" / "dogs" / "new.png")
    assert len({before, changed, linked(curated).revision}) == 3


# --- the same file twice --------------------------------------------------------------------------------


@pytest.mark.parametrize("threads_see", [5_000, 2])
def test_a_file_that_is_there_twice_counts_once_under_its_first_name(tmp_path, monkeypatch, threads_see):
    monkeypatch.setattr(file_checks, "_TOGETHER", threads_see)
    root = tmp_path / "photos"
    for name in ("b/copy.png", "a.png", "c/copy.png", "d.bmp", "e.bmp"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        plain(colour=(1, 2, 3) if name.endswith("png") else (9, 9, 9)).save(root / name)
    # The same size, and the same edges, yet another image
    image = plain((200, 200))
    image.putpixel((100, 100), (0, 0, 0))
    image.save(root / "f.bmp")
    plain((200, 200)).save(root / "g.bmp")
    dataset = opened(root)
    assert (dataset.count(), len(dataset)) == (4, 7)
    assert reason(dataset, 1) == "b/copy.png: it is the same file as a.png."
    assert reason(dataset, 2) == "c/copy.png: it is the same file as a.png."
    assert reason(dataset, 4) == "e.bmp: it is the same file as d.bmp."
    assert [dataset[at].image.size for at in (0, 3, 5, 6)] == [(20, 10), (20, 10), (200, 200), (200, 200)]
    assert opened(root, dataset_images=3).count() == 1


def test_looking_at_files_can_be_stopped_and_begins_anew(tmp_path):
    root = tmp_path / "photos"
    root.mkdir()
    plain().save(root / "a.png")

    def stop(what, done, total):
        if what.startswith("Looking"):
            raise Cancelled("A person stopped it.")

    with pytest.raises(Cancelled):
        opened(root).list_files(stop)
    assert opened(root).count() == 1
