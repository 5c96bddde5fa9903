"""Save auto-encoders as files, with checkpoints of those under way.

`<state>/sparse/NAME.safetensors` holds the weights and, as JSON in its metadata, the card. Beside it lie
`NAME.checkpoint` while the training is under way, and `NAME.lock`.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from workers.errors import MissingPart, RequestError
from workers.files import atomic_write
from workers.lab.index_files import report_disk_errors
from workers.record.sparse import MAX_NAME, NAME_PATTERN
from workers.sparse.autoencoder import UNCHANGED, SparseAutoencoder
from workers.sparse.quality import Quality

_CARD = "card"


@dataclass(frozen=True)
class SparseCard:
    """What is known of an auto-encoder: one that was trained here, or a published one that was added.

    Of a published one `seed`, `steps`, `batch` and `images` are 0, and dataset and quality say what it was measured on.
    """

    name: str
    kind: str
    k: int
    latents: int
    model: str
    """The model's own name and the revision of its weights, as all that is computed from them is named."""
    model_revision: str
    model_key: str
    """Key by which the registry loads it."""
    layer: str
    layer_path: str
    units: int
    dataset: str
    dataset_revision: str
    dataset_key: str
    """Key by which the registry loads it."""
    seed: int
    steps: int
    batch: int
    images: int
    """Images of the dataset that training could show: all but those held out."""
    scale: float
    """Activations were divided by this in training; the weights are as if they had not been."""
    fingerprint: str
    """Hash of all that the weights follow from."""
    quality: Quality
    source: str = ""
    """Where a published one comes from, such as "SAELens, folder layer4"; "" for one that was trained here."""
    normalisation: str = UNCHANGED
    """What is done to each position first: one of `autoencoder.NORMALISATIONS`."""
    signed: bool = False
    """True if negative latents are kept among the k largest."""


def find_path(state: Path, name: str) -> Path:
    """Return the path of an auto-encoder of this name. Raises RequestError for an invalid name."""
    # A name comes from people and becomes a file name: no separator, no leading dot.
    if not re.fullmatch(NAME_PATTERN, name, re.ASCII):
        raise RequestError(
            f"{name[:MAX_NAME]!r} cannot name an auto-encoder. Use 1 to {MAX_NAME} letters, digits, dots, hyphens "
            "and underscores, the first a letter or digit."
        )
    return state / "sparse" / f"{name}.safetensors"


def save_autoencoder(network: SparseAutoencoder, card: SparseCard, path: Path) -> None:
    """Save weights and card. Raises MachineryError if the disk is full."""
    weights = {name: each.detach().cpu().contiguous() for name, each in network.state_dict().items()}
    _write(path, save(weights, {_CARD: json.dumps(asdict(card))}))


def load_autoencoder(state: Path, name: str) -> tuple[SparseAutoencoder, SparseCard]:
    """Return the network and its card. Raises MissingPart if there is none of this name, or its file is damaged."""
    card, path = find_card(state, name), find_path(state, name)
    network = SparseAutoencoder(
        card.units, card.latents, card.k, card.kind, normalisation=card.normalisation, signed=card.signed
    )
    try:
        with safe_open(path, "pt") as file:
            network.load_state_dict({key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError, RuntimeError) as error:
        raise _describe_damage(path, error) from error
    return network.eval(), card


def find_card(state: Path, name: str) -> SparseCard:
    """Return the card of the auto-encoder of this name. Raises RequestError, MissingPart as `load_autoencoder`."""
    path = find_path(state, name)
    if not path.exists():
        there = ", ".join(card.name for card in list_cards(state)) or "none yet"
        raise MissingPart(
            f"There is no sparse auto-encoder {name!r}, only: {there}. Train it: manage.py sae train --help; or add a "
            "published one: manage.py sae add --help"
        )
    return read_card(path)


def read_card(path: Path) -> SparseCard:
    """Return the card in a file; reads no weights. Raises MissingPart if it is damaged."""
    try:
        with safe_open(path, "pt") as file:
            found: dict[str, Any] = json.loads(file.metadata()[_CARD])
        # Older cards lack the last fields, which have defaults.
        return SparseCard(**found | {"quality": Quality(**found["quality"])})
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise _describe_damage(path, error) from error


def check_weights(card: SparseCard, revision: str) -> None:
    """Raise MissingPart if the model that an auto-encoder is laid over has other weights now."""
    if revision != card.model_revision:
        done, remedy = ("added to", "sae add") if card.source else ("trained on", "sae train")
        raise MissingPart(
            f"The auto-encoder {card.name!r} was {done} other weights of {card.model_key} (revision "
            f"{card.model_revision}, now {revision}). Make one on these: manage.py {remedy}"
        )


def list_cards(state: Path) -> list[SparseCard]:
    """Return the cards of all files that can be read, by name."""
    found = []
    for path in sorted((state / "sparse").glob("*.safetensors")):
        try:
            found.append(read_card(path))
        except MissingPart:
            # Skip damage: others must still be listed.
            continue
    return found


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Save a checkpoint. Raises MachineryError if the disk is full."""
    written = io.BytesIO()  # torch hides the reason where it cannot write to a file
    torch.save(dict(state), written)
    _write(path, written.getbuffer())


def load_checkpoint(path: Path) -> dict[str, Any] | None:
    """Return the saved state; None if there is none, or it is damaged."""
    try:
        found: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # noqa: BLE001 - torch raises of many kinds for a damaged file
        return None
    # A file of another program may load as well.
    return found if "fingerprint" in found else None


def remove_leftovers(path: Path) -> None:
    """Remove what a process that was killed while writing has left of this auto-encoder. Its lock must be held."""
    for each in path.parent.glob("*.part"):
        # The pattern is that of `atomic_write`, so that no other file is removed.
        if re.fullmatch(rf"{re.escape(path.stem)}\.\d+\.\d+\.part", each.name):
            each.unlink(missing_ok=True)


def _write(path: Path, content: bytes | memoryview) -> None:
    # Whole or not at all, so what was saved before stays if this fails.
    with report_disk_errors(path.parent), atomic_write(path) as file:
        file.write(content)


def _describe_damage(path: Path, error: Exception) -> MissingPart:
    return MissingPart(
        f"{path} is no whole sparse auto-encoder ({error}). Remove the file and train it again: manage.py sae train; "
        "or add it again: manage.py sae add"
    )
