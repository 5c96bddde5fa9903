"""Spawrious (Lynch et al. 2023): four dogs, each nearly always in its own place in training; CC BY 4.0.

A folder `spawrious224` (or the unpacked archive, or the folder around it) with `{0,1}/<place>/<dog>/*.png`, 3,168
pictures each. The one-to-one challenges: in environment 0 a dog is in its place on 97 % of its pictures, in environment
1 on 87 %, the rest in a filler that all share; the test moves each dog to a place of another. Loaded through the
registry as "spawrious:FOLDER:easy:seed-0:validation".
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workers.errors import MissingPart, UnknownName
from workers.lab.decoding import decode_file
from workers.protocols import GROUP_SPLITS, GroupSplit, LabSettings, Picture

DOGS = ("bulldog", "corgi", "dachshund", "labrador")
PLACES = ("beach", "desert", "dirt", "jungle", "mountain", "snow")
ENVIRONMENTS = ("0", "1")
SHARES = (0.97, 0.87)
CHALLENGES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "easy": (("desert", "snow", "jungle", "dirt"), ("dirt", "jungle", "snow", "desert"), "beach"),
    "medium": (("mountain", "jungle", "beach", "dirt"), ("jungle", "snow", "dirt", "beach"), "desert"),
    "hard": (("jungle", "desert", "mountain", "snow"), ("mountain", "jungle", "snow", "desert"), "beach"),
}
"""One-to-one challenge -> the places of `DOGS` in training, those in the test, the filler."""
_KEPT = 40
"""Pictures of each dog in each place that are reserved for the balanced split; an eighth in small folders."""
_SUFFIXES = (".png", ".jpg", ".jpeg")


def load(settings: LabSettings, name: str) -> SpawriousSplit:
    """Load one split. Raises UnknownName for another name, MissingPart for a folder with another layout."""
    found = re.fullmatch(r"(.+):(\w+):seed-(\d{1,6}):(\w+)", name)
    if not found or found[2] not in CHALLENGES or found[4] not in GROUP_SPLITS:
        raise UnknownName(
            f"spawrious has no split {name!r}. Name a folder, one of {', '.join(CHALLENGES)}, a seed, and one of "
            f"{', '.join(GROUP_SPLITS)}: spawrious:/data/spawrious224:easy:seed-0:validation."
        )
    root = _find_root(Path(found[1]).expanduser())
    return SpawriousSplit(name, root, found[2], int(found[3]), found[4], settings.dataset_images)


def _find_root(folder: Path) -> Path:
    """Return the folder that holds the environments: this one, or the one in it. Raises MissingPart."""
    if not folder.is_dir():
        raise MissingPart(f"There is no folder {str(folder)!r}. Name the one that Spawrious was unpacked to.")
    inside = sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    for root in (folder, *inside):
        if all((root / each).is_dir() for each in ENVIRONMENTS):
            return root
    there = ", ".join(each.name for each in inside[:8]) or "no folder at all"
    raise MissingPart(
        f"{folder} is not laid out as Spawrious: wanted are the folders 0 and 1 in it, or in one folder below, such as "
        f"spawrious224/0/desert/bulldog/*.png; found {there}. Unpack the whole archive there."
    )


class SpawriousSplit:
    """See `protocols.GroupedDataset`. Safe for threads."""

    classes: Sequence[str] = DOGS
    network = "resnet18"
    start: Path | None = None
    epochs = 1
    """As in MAIA's appendix F; starting from nothing it takes more, or a file of weights."""

    def __init__(self, name: str, root: Path, challenge: str, seed: int, split: GroupSplit, most: int = 0) -> None:
        # The split without its folder, whose place says nothing of the images.
        self.name = f"spawrious:{root.name}:{name.rpartition(f':{challenge}:')[2]}:{challenge}"
        own, moved, filler = CHALLENGES[challenge]
        self.grounds: Sequence[str] = tuple(dict.fromkeys((*own, filler, *moved)))
        rows = _list_rows(root, own, moved, filler, split)
        # The balanced split and the test are used whole, so their order does not matter.
        if split != "balanced":
            # Training and validation are two parts of one order, so they must be shuffled alike.
            random.Random(f"spawrious {challenge} {seed} {split in ('train', 'validation')}").shuffle(rows)
        cut = len(rows) * 9 // 10
        rows = rows[:cut] if split == "train" else rows[cut:] if split == "validation" else rows
        rows = rows[: most or None]
        self._files = [path for path, _, _ in rows]
        self.cells: NDArray[np.int64] = np.array([row[1:] for row in rows], dtype=np.int64)
        names = "\n".join(str(path.relative_to(root)) for path in self._files)
        self.revision = hashlib.sha256(f"{root}\n{names}".encode()).hexdigest()[:12]

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> Picture:
        """Return the picture. Raises IndexError outside 0 … length - 1, BrokenImage for a file that is no image."""
        if not 0 <= index < len(self):
            raise IndexError(f"{self.name} has no image {index}: they are numbered 0 to {len(self) - 1}.")
        with self._files[index].open("rb") as file:
            return Picture(decode_file(file))

    def source(self, index: int) -> str:
        """Return environment, place, dog and file."""
        return "/".join(self._files[index].parts[-4:])


Row = tuple[Path, int, int]
"""A file, its class and its ground."""


def _list_rows(root: Path, own: Sequence[str], moved: Sequence[str], filler: str, split: GroupSplit) -> list[Row]:
    rows: list[Row] = []
    places = list(dict.fromkeys((*own, filler, *moved)))
    for dog, name in enumerate(DOGS):
        for share, environment in zip(SHARES, ENVIRONMENTS, strict=True):
            if split == "test":
                files = _files(root, environment, moved[dog], name)
                # The last files by name belong to the balanced split: neither training nor test has them.
                rows += [(path, dog, places.index(moved[dog])) for path in files[: -_count_kept(files)]]
            elif split == "balanced":
                for ground, place in enumerate(own):
                    files = _files(root, environment, place, name)
                    rows += [(path, dog, ground) for path in files[-_count_kept(files) :]]
            else:
                files = _files(root, environment, own[dog], name)
                # Never more than what the balanced split leaves.
                kept = min(int(share * len(files)), len(files) - _count_kept(files))
                rows += [(path, dog, dog) for path in files[:kept]]
                # The filler makes up the rest, so that both environments have as many pictures of each dog.
                others = _files(root, environment, filler, name)[: len(files) - int(share * len(files))]
                rows += [(path, dog, len(own)) for path in others]
    return rows


def _count_kept(files: Sequence[Path]) -> int:
    return max(1, min(_KEPT, len(files) // 8))


@cache
def _files(root: Path, environment: str, place: str, dog: str) -> tuple[Path, ...]:
    """Return the pictures of a dog in a place, by name. Raises MissingPart if there are none."""
    folder = root / environment / place / dog
    # By name, so that a part is always the same one.
    found = sorted(folder.glob("*")) if folder.is_dir() else []
    pictures = tuple(path for path in found if path.suffix.lower() in _SUFFIXES)
    if not pictures:
        above = next(each for each in (folder, *folder.parents) if each.is_dir())
        there = ", ".join(sorted(each.name for each in above.iterdir())[:8]) or "nothing"
        raise MissingPart(f"{folder} has no pictures; {above} holds {there}. Unpack the whole archive of Spawrious.")
    return pictures
