"""Find the files of a checkpoint: in a folder, in the cache of the Hugging Face hub, or on the hub itself.

Files are asked for as groups of names: one file of each group is enough, and the first that exists is used. A file
`*.index.json` stands for the shards it lists. Used by plug-ins; knows nothing of the files' contents.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path

from workers.errors import MissingPart, UnknownName
from workers.weights import get_first_line

Groups = Sequence[tuple[str, ...]]

CHECKPOINT: Groups = (
    ("config.json",),
    ("preprocessor_config.json", "processor_config.json"),
    ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"),
)
"""Files that `save_pretrained` of an image model and of its processor writes."""

fetching = threading.Event()
"""Set if a person allowed this process to fetch missing files."""
ANSWER_SECONDS = 10.0
"""Timeout for asking the hub whether it has a checkpoint. Asked once, so that being offline is reported at once."""


def missing(name: str, groups: Groups) -> str:
    """Say what keeps a checkpoint, by folder or hub id, from being used, and the remedy; "" if nothing does.

    Files that may be fetched from the hub do not count as missing. Makes no request.
    """
    local = Path(name).expanduser()
    if local.is_dir():
        for group in groups:
            if not _present(local, group):
                return (
                    f"The folder {local.resolve()} has no {_find_missing(local, group)}. Save the whole checkpoint "
                    "there, with `save_pretrained` of the model and of its image processor, or name another folder."
                )
        return ""
    if not _is_id(name):
        return f"There is no folder {name!r}, and it is no id of the hub, such as microsoft/resnet-152."
    return "" if fetching.is_set() or _find_cached(name, groups) else _explain_absence(name)


def _explain_absence(name: str) -> str:
    return f"{name} is not on this machine. Get it: hf download {name}"


def folder(name: str, groups: Groups) -> Path:
    """Return the folder with these files; fetched from the hub if that is allowed.

    Raises UnknownName if there is no such folder or id, MissingPart if files are missing.
    """
    local = Path(name).expanduser()
    if lack := missing(name, groups):
        # A folder or id that exists lacks files; others are unknown
        raise MissingPart(lack) if local.is_dir() or _is_id(name) else UnknownName(lack)
    if local.is_dir():
        return local.resolve()
    # Fetched only if a person allowed it with `--fetch`: a worker must not download gigabytes by itself.
    return _find_cached(name, groups) or _fetch(name, groups)


def find_folder(name: str, file: str) -> Path | None:
    """Return the local folder of a checkpoint that holds one of its files: its own, or in the hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    local = Path(name).expanduser()
    if local.is_dir():
        return local.resolve() if (local / file).is_file() else None
    found = try_to_load_from_cache(name, file) if _is_id(name) else None
    return Path(found).parent if isinstance(found, str) else None


def files(place: Path, groups: Groups) -> list[Path]:
    """Return the files of a folder that are used: the first of each group that exists, with its shards."""
    return [path for group in groups for path in _present(place, group)]


def fingerprint(place: Path, groups: Groups) -> str:
    """Return a name for the content of these files that changes whenever it does."""
    # In the hub's cache the commit names the content already.
    # Files of a snapshot never change
    if place.parent.name == "snapshots" and place.parent.parent.name.startswith("models--"):
        return place.name[:12]
    digest = sha256()
    for path in files(place, groups):
        digest.update(f"{path.name} {file_fingerprint(path)}\n".encode())
    return digest.hexdigest()[:12]


def file_fingerprint(path: Path) -> str:
    """Return the SHA-256 of a file, in hex; read again only if the file was written since."""
    seen = path.stat()
    return _digest(path, (seen.st_ino, seen.st_size, seen.st_mtime_ns))


@lru_cache(maxsize=256)
def _digest(path: Path, seen: tuple[int, int, int]) -> str:  # noqa: ARG001 - invalidates the cache when it changes
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _present(place: Path, group: tuple[str, ...]) -> list[Path]:
    """Return the first file of the group with all its shards; empty if no file of it is complete."""
    for name in group:
        # An index alone is not enough: its shards must be there
        paths = [place / name]
        if paths[0].is_file():
            paths += [place / shard for shard in _list_shards(paths[0])]
            if all(path.is_file() for path in paths):
                return paths
    return []


def _find_missing(place: Path, group: tuple[str, ...]) -> str:
    """Return the file of a group to ask for; if listed shards are missing, those."""
    for name in group:
        gone = [shard for shard in _list_shards(place / name) if not (place / shard).is_file()]
        if gone:
            return f"{', '.join(gone[:3])}{' …' * bool(gone[3:])}, of the shards that {name} lists"
    return " or ".join(group[:2])


def _list_shards(path: Path) -> list[str]:
    """Return names of the files that an index lists; none for any other file. Raises MissingPart for a damaged
    index."""
    if not path.name.endswith(".index.json") or not path.is_file():
        return []
    try:
        # Many tensors lie in one shard
        return sorted(set(json.loads(path.read_text())["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MissingPart(f"The list of shards {path} is damaged. Fetch or save the checkpoint again.") from error


def _is_id(name: str) -> bool:
    # Imported here: pages that name no checkpoint start without it
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _find_cached(name: str, groups: Groups) -> Path | None:
    """Return the cached snapshot of an id, if it is complete."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, groups[0][0])
    place = Path(found).parent if isinstance(found, str) else None
    # Snapshots may be incomplete: downloads are interrupted
    return place if place and all(_present(place, group) for group in groups) else None


def _fetch(name: str, groups: Groups) -> Path:
    """Fetch the files of an id and return its snapshot."""
    from httpx2 import HTTPError
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        # The library repeats a failed download for most of a minute, but asks this question only once.
        HfApi().model_info(name, timeout=ANSWER_SECONDS)
        # The first file gives the commit that all others are taken from
        place = Path(hf_hub_download(name, groups[0][0])).parent
        for group in groups:
            for shard in _list_shards(_get_first(name, group, place.name)):
                # Of the commit of the first file: the branch may move on between two downloads.
                hf_hub_download(name, shard, revision=place.name)
        return place
    except GatedRepoError as error:
        raise MissingPart(
            f"{name} asks for consent to its licence. Give it on https://huggingface.co/{name}, then: hf auth login"
        ) from error
    except RepositoryNotFoundError as error:
        raise UnknownName(
            f"There is no {name!r}: no folder here has this name, and the hub does not know it. Correct it, or, "
            "if it is private: hf auth login"
        ) from error
    except (OSError, HTTPError) as error:
        raise MissingPart(f"{_explain_absence(name)} (the hub cannot be reached: {get_first_line(error)})") from error


def _get_first(name: str, group: tuple[str, ...], commit: str) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import RemoteEntryNotFoundError

    for file in group:
        try:
            return Path(hf_hub_download(name, file, revision=commit))
        except RemoteEntryNotFoundError:
            continue
    raise MissingPart(f"{name} on the hub has no {' or '.join(group)}, so it cannot be used here. Choose another.")
