"""Convert user input, such as a hub id or a path, to the key of a model or dataset, or to a system."""

from __future__ import annotations

from pathlib import Path

from experiments.core.unit_names import unit_number
from experiments.models import Dataset
from workers import registry
from workers.errors import RequestError, UnknownName
from workers.jobs.laboratory import laboratory
from workers.protocols import LayerInfo
from workers.record.systems import SystemSpec

MAX_MODEL, MAX_DATASET = 200, 500
"""Maximum characters in a row."""
SAVED_SIGNS = ("dataset_info.json", "dataset_dict.json", "state.json")
"""Files that the library `datasets` saves at the top of a folder."""
PUBLISHED_SIGN = "images.npy"
"""File in a folder of published exemplars, or in each folder of a layer below it."""
FOLLOWING = "links"
"""Family of folders whose links are followed."""
PUBLISHED_DEPTH = 3
"""Maximum depth of folders in between: model, dataset and layer."""


def model_key(written: str) -> str:
    """Return the key of a model. A hub id or folder without a family is one of transformers: "hf:…". Raises
    UnknownName."""
    laboratory()  # Plug-ins register their parts here
    text = written.strip()
    if names_plugin(registry.VISION_MODELS, text):
        return _check_key("model", make_absolute(text), MAX_MODEL)
    # A bare word that is no folder is a misspelt key, not a hub id.
    if not text or ("/" not in text and not Path(text).is_dir()):
        names = ", ".join(registry.VISION_MODELS)
        raise UnknownName(f"There is no model {text!r}. Choose one of: {names}. Any hub id is hf:owner/name.")
    return _check_key("model", make_absolute(f"hf:{text}"), MAX_MODEL)


def dataset_key(written: str, *, follow_links: bool = False) -> str:
    """Return the key of a dataset. The kind of a folder is detected. Raises UnknownName.

    `follow_links` allows links out of a folder of images.
    """
    key = _find_key(written)
    family, _, path = key.partition(":")
    if follow_links and family != FOLLOWING:
        if family != "folder":
            raise UnknownName(f"{key} is not a folder of images, so there are no links to follow.")
        return _check_key("dataset", f"{FOLLOWING}:{path}", MAX_DATASET)
    return key


def _find_key(written: str) -> str:
    laboratory()  # Plug-ins register their parts here
    text = written.strip()
    if names_plugin(registry.DATASETS, text):
        return _check_key("dataset", make_absolute(text), MAX_DATASET)
    folder, split = _split_key(text)
    if not text or not folder.is_dir():
        where = folder.absolute() if text else "without a name"
        raise UnknownName(f"There is no folder {where}. Write the path of a folder of images, or of a saved dataset.")
    return _check_key("dataset", f"{_find_family(folder)}:{folder.absolute()}{split}", MAX_DATASET)


def _find_family(folder: Path) -> str:
    """Return the kind of a folder: saved by the library `datasets`, published exemplars, or images."""
    if any((folder / name).is_file() for name in SAVED_SIGNS):
        return "saved"
    above = ("*/" * depth for depth in range(PUBLISHED_DEPTH + 1))
    return "published" if any(any(folder.glob(each + PUBLISHED_SIGN)) for each in above) else "folder"


def _split_key(text: str) -> tuple[Path, str]:
    """Return a folder and an optional split, as in "/data/birds#test"."""
    whole, (before, mark, after) = Path(text).expanduser(), text.rpartition("#")
    # A folder may itself have "#" in its name
    return (whole, "") if whole.exists() or not mark else (Path(before).expanduser(), mark + after)


def names_plugin(plugins: registry.Plugins, text: str) -> bool:
    """True if the text is a key of the registry, or begins with a family."""
    # A family alone, as in "hf:", names nothing.
    family, colon, name = text.partition(":")
    return bool(name and family + colon in plugins) or (text in plugins and not text.endswith(":"))


def make_absolute(key: str) -> str:
    """Return the key with an absolute path, if it names an existing one: workers run in another folder."""
    family, colon, name = key.partition(":")
    path, split = _split_key(name)
    return f"{family}:{path.absolute()}{split}" if colon and name and path.exists() else key


def _check_key(what: str, key: str, longest: int) -> str:
    # Longer keys do not fit the column.
    if len(key) > longest or not key.isprintable():
        raise UnknownName(f"{key[:60]!r}… cannot name a {what}: at most {longest} printable characters are possible.")
    return key


# --- systems ----------------------------------------------------------------------------------------


def system_named(model: str, layer: str, unit: str, dataset: str = "") -> SystemSpec:
    """Return the system; its kind follows from its layer. Raises RequestError if something does not exist."""
    key = make_absolute(model)
    layers = {info.name: info for info in laboratory().layers(key)}
    if layer not in layers:
        raise UnknownName(f"{model} has no layer {layer!r}. Choose one of: {', '.join(layers)}.")
    info = layers[layer]
    number = unit_number(unit, f"{layer} of {model}", info.units, info.names)
    options = {"dataset": dataset_named(dataset)} if dataset else {}
    return SystemSpec(registry.system_of(info.kind), key, layer, number, options)


def layer_of(spec: SystemSpec) -> LayerInfo:
    """Return the system's layer. Raises UnknownName if it does not exist."""
    laboratory().check(spec)
    return next(info for info in laboratory().layers(spec.model) if info.name == spec.layer)


def name_of(spec: SystemSpec) -> str:
    """Return the name of the unit, such as a class or concept; "" for unnamed units. Raises UnknownName."""
    names = layer_of(spec).names
    return names[spec.unit] if spec.unit < len(names) else ""


def dataset_named(name: str) -> str:
    """Return the key of a dataset, added or not, by its key, name or path. Raises UnknownName with the known ones."""
    if row := find_dataset(name):
        return row.key
    try:
        return dataset_key(name)
    except RequestError:
        there = ", ".join(Dataset.objects.values_list("key", flat=True)) or "toybox"
        raise UnknownName(f"There is no dataset or folder {name!r}. Choose one of: {there}.") from None


def find_dataset(name: str) -> Dataset | None:
    """Return the row of an added dataset by its key, path or name."""
    rows = Dataset.objects.all()
    # Users know a dataset by its path, without the family
    paths = rows.filter(key__in=[f"{family}:{name}" for family in ("folder", FOLLOWING, "saved", "published")])
    return rows.filter(key=name).first() or paths.first() or rows.filter(label=name).first()
