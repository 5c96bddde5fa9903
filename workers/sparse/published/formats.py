"""Recognise the layout of a published auto-encoder: by the names of its files, else by their content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from workers.errors import RequestError
from workers.sparse.published.canonical import PublishedForm
from workers.sparse.published.configs import starts_with_json
from workers.sparse.published.dictionary_learning import DICTIONARY_LEARNING, read_dictionary
from workers.sparse.published.reading import read_tensors
from workers.sparse.published.saelens import PRISMA, SAELENS, read_prisma, read_saelens
from workers.sparse.published.saev import SAEV, read_saev
from workers.sparse.published.topk_formats import OPENAI, SPARSIFY, read_openai, read_sparsify

_NAMED: dict[str, tuple[str, Callable[[Path], PublishedForm]]] = {
    "sae_weights.safetensors": ("cfg.json", read_saelens),
    "ae.pt": ("config.json", read_dictionary),
    "sae.safetensors": ("cfg.json", read_sparsify),
}
"""Files with weights: the config that lies beside each, and what reads both."""
_LAYOUTS = (
    f"{SAELENS} (cfg.json, sae_weights.safetensors), {DICTIONARY_LEARNING} (config.json, ae.pt), {SPARSIFY} (cfg.json, "
    f"sae.safetensors), {PRISMA} (config.json, weights), {OPENAI} and {SAEV} (one .pt file)"
)
_SUFFIXES = (".pt", ".pth", ".safetensors")
_BESIDE = "sparsity.safetensors"
"""SAELens writes how often latents were active into it."""


def read_published(path: Path) -> PublishedForm:
    """Read the auto-encoder in a folder, or of a file with weights. Raises RequestError."""
    weights = _find_weights(path)
    # By name first: these files need their config, which says what tensors alone do not.
    if named := _NAMED.get(weights.name):
        config, read = named
        if not weights.with_name(config).is_file():
            raise RequestError(f"{weights} lacks {config} beside it, which says how it is used. Put it there.")
        return read(weights)
    # saev writes a header in JSON before what PyTorch saved.
    if starts_with_json(weights):
        return read_saev(weights)
    tensors = read_tensors(weights)
    if "pre_bias" in tensors:
        return read_openai(tensors)
    if "W_enc" in tensors and weights.with_name("config.json").is_file():
        return read_prisma(tensors)
    raise RequestError(f"{weights} is in no known layout. Known are: {_LAYOUTS}.")


def _find_weights(path: Path) -> Path:
    """Return the one file with weights. Raises RequestError."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise RequestError(f"There is no folder or file {path}. Name one that this machine can read.")
    try:
        names = sorted(each.name for each in path.iterdir() if each.suffix in _SUFFIXES and each.is_file())
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.") from error
    # Statistics, not weights.
    found = [name for name in names if name != _BESIDE]
    if not found:
        raise RequestError(f"{path} holds no auto-encoder in a known layout. Known are: {_LAYOUTS}.")
    if len(found) > 1:
        raise RequestError(
            f"{path} holds several files with weights: {', '.join(found)[:300]}. Name one of them, not the folder."
        )
    return path / found[0]
