"""From what a person writes, such as a hub id or a path, to the key of a model or a dataset."""

from __future__ import annotations

from pathlib import Path

from workers import registry
from workers.errors import UnknownName

LONGEST_MODEL, LONGEST_DATASET = 200, 500
"""Characters that a row can hold."""
SAVED_SIGNS = ("dataset_info.json", "dataset_dict.json", "state.json")
"""Files that the library `datasets` leaves at the top of what it saves."""
PUBLISHED_SIGN = "images.npy"
"""What a folder of published exemplars holds, or each of the folders of layers in it."""
PUBLISHED_DEPTH = 3
"""Folders of model, dataset and layer that may lie between."""


def model_key(written: str) -> str:
    """The key of a model. A hub id or a folder without a family is one of transformers: "hf:…". Raises UnknownName."""
    text = written.strip()
    if names_plugin(registry.VISION_MODELS, text):
        return check_key("model", make_absolute(text), LONGEST_MODEL)
    if not text or ("/" not in text and not Path(text).is_dir()):
        names = ", ".join(registry.VISION_MODELS)
        raise UnknownName(f"There is no model {text!r}. Choose one of: {names}. Any hub id is hf:owner/name.")
    return check_key("model", make_absolute(f"hf:{text}"), LONGEST_MODEL)


def dataset_key(written: str) -> str:
    """The key of a dataset; of a folder, finds out of what kind it is. Raises UnknownName."""
    text = written.strip()
    if names_plugin(registry.DATASETS, text):
        return check_key("dataset", make_absolute(text), LONGEST_DATASET)
    folder, split = split_key(text)
    if not text or not folder.is_dir():
        where = folder.absolute() if text else "without a name"
        raise UnknownName(f"There is no folder {where}. Write the path of a folder of images, or of a saved dataset.")
    return check_key("dataset", f"{find_family(folder)}:{folder.absolute()}{split}", LONGEST_DATASET)


def find_family(folder: Path) -> str:
    """Whether a folder was saved by the library `datasets`, holds published exemplars, or simply images."""
    if any((folder / name).is_file() for name in SAVED_SIGNS):
        return "saved"
    above = ("*/" * depth for depth in range(PUBLISHED_DEPTH + 1))
    return "published" if any(any(folder.glob(each + PUBLISHED_SIGN)) for each in above) else "folder"


def split_key(text: str) -> tuple[Path, str]:
    """A folder, and the split of it that may follow, as in "/data/birds#test"."""
    whole, (before, mark, after) = Path(text).expanduser(), text.rpartition("#")
    return (whole, "") if whole.exists() or not mark else (Path(before).expanduser(), mark + after)


def names_plugin(plugins: registry.Plugins, text: str) -> bool:
    """Whether it is a name of the registry, or begins with a family of it."""
    family, colon, name = text.partition(":")
    return bool(name and family + colon in plugins) or (text in plugins and not text.endswith(":"))


def make_absolute(key: str) -> str:
    """The key with its path in full, if it names one that exists: workers run in another folder."""
    family, colon, name = key.partition(":")
    path, split = split_key(name)
    return f"{family}:{path.absolute()}{split}" if colon and name and path.exists() else key


def check_key(what: str, key: str, longest: int) -> str:
    if len(key) > longest or not key.isprintable():
        raise UnknownName(f"{key[:60]!r}… cannot name a {what}: at most {longest} printable characters are taken.")
    return key
