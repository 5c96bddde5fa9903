"""Folders of images as datasets: what is read, how, and what becomes of everything that is no image."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys

import pytest

from tests import ROOT
from tests.support.image_folders import opened, plain, reason
from tests.support.tiny_lab import TinyModel
from workers import git_lfs, registry
from workers.datasets.folder import file_list
from workers.datasets.folder.file_list import FileList
from workers.errors import Cancelled, MissingPart
from workers.lab.exemplars import ExemplarIndex
from workers.protocols import LabSettings


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "photos"
    path.mkdir()
    return path


# --- what is no image -----------------------------------------------------------------------------------


def test_what_cannot_be_read_keeps_its_position_and_says_why(root):
    plain().save(root / "b.jpg")
    plain((300, 300)).save(root / "whole.png")
    (root / "cut.jpg").write_bytes((root / "b.jpg").read_bytes()[:-300])
    (root / "cut.png").write_bytes((root / "whole.png").read_bytes()[:-40])
    (root / "empty.png").touch()
    (root / "notes.txt").write_text("no image")
    (root / "page.svg").write_text("<svg/>")
    dataset = opened(root)
    reasons = {dataset.source(at): reason(dataset, at) for at in (1, 2, 3, 4, 5)}
    assert list(reasons) == ["cut.jpg", "cut.png", "empty.png", "notes.txt", "page.svg"]
    assert reasons["cut.jpg"].startswith("cut.jpg: it is damaged (")
    assert reasons["cut.png"].startswith("cut.png: it is damaged (")
    assert reasons["empty.png"] == "empty.png: it is empty."
    assert (
        reasons["notes.txt"]
        == "notes.txt: it is no JPEG, PNG, WebP, GIF, BMP, TIFF, PPM, PGM, AVIF or JPEG 2000 image."
    )
    assert dataset[0].image.size == (20, 10)
    assert dataset[6].image.size == (300, 300)


def test_what_its_header_says_is_no_image_is_not_counted_whatever_its_name(root):
    plain().save(root / "without ending", "PNG")
    plain((9, 9)).save(root / "b.txt", "JPEG")
    plain((600, 10)).save(root / "slim.png")
    for name in ("a.png", "notes.txt", "labels.csv"):
        (root / name).write_text("no image")
    assert (opened(root).count(), len(opened(root))) == (2, 6)
    assert opened(root, dataset_images=2).count() == 1


def test_a_folder_without_an_image_is_refused_with_the_reason_and_the_remedy(root):
    with pytest.raises(MissingPart, match=r"has 0 files, and none is an image that can be read. Put images there"):
        opened(root).count()
    (root / "notes.txt").write_text("no image")
    with pytest.raises(MissingPart, match=r"has 1 files, .*The first: notes.txt: it is no JPEG.* Put images there"):
        opened(root).count()
    (root / "notes.txt").write_bytes(git_lfs.MARK + b"v1\noid sha256:" + b"a" * 64 + b"\nsize 3443\n")
    with pytest.raises(MissingPart, match=r"notes.txt: it is a pointer of Git LFS .*git lfs pull"):
        opened(root).count()
    (root / "shard-000.TAR").touch()
    with pytest.raises(MissingPart, match=r"Files such as 'shard-000.TAR' are not looked into: .*save_to_disk"):
        opened(root).count()


def test_links_out_of_the_folder_pipes_and_sockets_are_not_read(root, monkeypatch):
    plain().save(root.parent / "secret.png")
    plain().save(root / "inside.png")
    (root / "a").symlink_to("../secret.png")
    (root / "b").symlink_to("/etc/passwd")
    (root / "c").symlink_to("inside.png")
    (root / "d").symlink_to("c-loop")
    (root / "c-loop").symlink_to("d")
    (root / "e").symlink_to(root.parent)
    (root / "f").symlink_to(".")
    (root / "g").symlink_to("nowhere")
    os.mkfifo(root / "h")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("i")
        dataset = opened(root)
        found = {dataset.source(at): at for at in range(len(dataset))}
        assert dataset[found.pop("c")].image == plain()
        assert reason(dataset, found.pop("inside.png")) == "inside.png: it is the same file as c."
        said = {name: reason(dataset, at).removeprefix(f"{name}: ") for name, at in found.items()}
    out = "it is a link that leads out of the folder, and this dataset does not follow such links."
    loop = "it cannot be read (Too many levels of symbolic links)."
    assert {name: said[name] for name in "abe"} == dict.fromkeys("abe", out)
    assert (said["d"], said["c-loop"]) == (loop, loop)
    assert said["f"].startswith("it is a folder that cannot be read, or a link to a folder")
    assert said["g"] == "it cannot be read (No such file or directory)."
    assert said["h"] == "it is no file but a device, a pipe or a socket."
    assert said["i"].startswith("it cannot be read (")


def test_what_may_not_be_read_is_named(root):
    plain().save(root / "a.png")
    (root / "closed").mkdir()
    plain().save(root / "closed" / "b.png")
    plain().save(root / "c.png")
    (root / "a.png").chmod(0o644)
    (root / "c.png").chmod(0)
    (root / "closed").chmod(0)
    for path in (root, *root.parents):
        if path.stat().st_uid == os.geteuid() and not path.stat().st_mode & stat.S_IXOTH:
            path.chmod(path.stat().st_mode | 0o755)  # the umask of a state folder shuts others out
    child = subprocess.run([sys.executable, "-c", LISTED, root], check=True, capture_output=True, text=True, cwd=ROOT)
    (root / "closed").chmod(stat.S_IRWXU)
    assert child.stdout.splitlines() == [
        "(20, 10)",
        "c.png: it cannot be read (Permission denied).",
        "closed: it cannot be read (Permission denied).",
    ]


LISTED = """
import os, sys
from pathlib import Path
from PIL import Image
from workers.datasets.folder import dataset as folder
from workers.errors import BrokenImage
from workers.protocols import LabSettings

Image.preinit()
if not os.geteuid():
    os.seteuid(65534)  # the superuser may read everything
dataset = folder.load(LabSettings(Path("/nowhere")), sys.argv[1])
for at in range(len(dataset)):
    try:
        print(dataset[at].image.size)
    except BrokenImage as error:
        print(error)
"""


def test_names_that_are_no_text_are_shown_without_harm(root):
    for name in (b"\xff\xfe.png", b"line\nbreak.png", b"\x1b[31mred.png", "schön.png".encode()):
        (root / os.fsdecode(name)).write_bytes(b"no image")
    dataset = opened(root)
    names = {dataset.source(at) for at in range(4)}
    assert names == {"\ufffd\ufffd.png", "line\ufffdbreak.png", "\ufffd[31mred.png", "schön.png"}
    assert all(reason(dataset, at).startswith(dataset.source(at)) for at in range(4))


def test_positions_outside_are_refused(root):
    plain().save(root / "a.png")
    for index in (-1, 1):
        with pytest.raises(IndexError, match="There is no file"):
            opened(root)[index]


@pytest.mark.parametrize("path", ["/nowhere/at/all", "~nobody-here/photos", "\udcff"])
def test_a_folder_that_is_not_there_is_named(tmp_path, path):
    settings = LabSettings(tmp_path)
    assert "There is no folder" in registry.missing(registry.DATASETS, f"folder:{path}", settings)
    with pytest.raises(MissingPart, match=r"There is no folder .*Name one that holds images"):
        registry.load(registry.DATASETS, f"folder:{path}")(settings)


def test_a_folder_that_vanishes_is_an_error_of_its_own(root):
    plain().save(root / "a.png")
    dataset = opened(root)
    assert len(dataset) == 1
    root.rename(root.parent / "elsewhere")
    with pytest.raises(MissingPart, match="is no longer there"):
        dataset[0]


def test_an_empty_folder_is_refused_when_it_is_indexed(root):
    assert len(opened(root)) == 0
    index = ExemplarIndex(LabSettings(root.parent / "state"), TinyModel(), opened(root))
    with pytest.raises(MissingPart, match="The dataset photos has 0 files"):
        index.prepare(["patches"])


# --- the list of files ---------------------------------------------------------------------------------


def test_files_come_in_the_order_of_their_paths_however_deep(root):
    for name in ("b/2.png", "b/10.png", "a.png", "B.png", "b/deep/er/x.png", ".hidden/x.png", ".DS_Store"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        plain().save(root / name, "PNG")
    dataset = opened(root)
    names = [dataset.source(at) for at in range(len(dataset))]
    assert names == ["B.png", "a.png", "b/10.png", "b/2.png", "b/deep/er/x.png"]


def test_the_list_is_made_once_and_again_when_the_folder_changes(root, monkeypatch):
    made = []
    of = FileList.of.__func__
    monkeypatch.setattr(FileList, "of", classmethod(lambda *args, **named: made.append(1) or of(*args, **named)))
    (root / "sub").mkdir()
    plain().save(root / "sub" / "a.png")
    first = opened(root).revision
    assert opened(root).revision == first
    assert len(made) == 1
    plain().save(root / "sub" / "b.png")
    second = opened(root).revision
    (root / "sub" / "a.png").write_bytes(b"another file of the same name")
    third = opened(root).revision
    os.utime(root / "sub" / "a.png", ns=(0, 0))
    assert len({first, second, third, opened(root).revision}) == 4
    assert len(made) == 4


def test_a_folder_that_moves_keeps_its_revision(root):
    plain().save(root / "a.png")
    before = opened(root).revision
    root.rename(root.parent / "moved")
    assert opened(root.parent / "moved").revision == before


def test_a_damaged_list_is_made_again(root):
    plain().save(root / "a.png")
    assert len(opened(root)) == 1
    (kept,) = (root.parent / "state" / "datasets").iterdir()
    kept.write_bytes(b"PK\x03\x04 damaged")
    assert len(opened(root)) == 1


def test_the_limit_takes_the_first_files_and_has_a_revision_of_its_own(root):
    for name in "abc":
        plain().save(root / f"{name}.png")
    whole, some, more = opened(root), opened(root, dataset_images=2), opened(root, dataset_images=9)
    assert (len(whole), len(some), len(more)) == (3, 2, 3)
    assert some.revision == f"{whole.revision}-2"
    assert more.revision == whole.revision


def test_listing_says_how_far_it_is_and_can_be_stopped(root, monkeypatch):
    monkeypatch.setattr(file_list, "_OFTEN", 2)
    for name in "abc":
        plain().save(root / f"{name}.png")  # the same file, so that each is read to its end
    said = []
    opened(root).list_files(lambda *each: said.append(each))
    listing = [("Listing the files of photos, 0 so far", 0, 1), ("Listing the files of photos, 2 so far", 0, 1)]
    looking = [("Looking at the files of photos", 0, 3), ("Looking at the files of photos", 3, 3)]
    assert said == [*listing, *looking]
    plain().save(root / "d.png")

    def stop(what, done, total):
        raise Cancelled("A person stopped it.")

    with pytest.raises(Cancelled):
        opened(root).list_files(stop)
    assert len(opened(root)) == 4


def test_a_mixed_folder_is_indexed_and_what_was_left_out_is_reported(root):
    plain((8, 8), (255, 0, 0)).save(root / "a.png")
    (root / "b.txt").write_text("no image")
    plain((8, 8), (0, 0, 0)).save(root / "c.png")
    index = ExemplarIndex(LabSettings(root.parent / "state"), TinyModel(), opened(root))
    assert index.unit("patches", 0).positions == (0,)
    assert [(each.position, each.file, each.reason) for each in index.skipped().first] == [
        (1, "b.txt", "b.txt: it is no JPEG, PNG, WebP, GIF, BMP, TIFF, PPM, PGM, AVIF or JPEG 2000 image.")
    ]
