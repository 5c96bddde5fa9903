"""Sparse auto-encoders of this installation: training one, and which there are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.conf import settings

from workers.jobs import plugin_keys
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress
from workers.sparse import storage
from workers.sparse.recipe import SparseRecipe
from workers.sparse.training import find_source, train_sparse

Facts = dict[str, Any]


def train(model: str, layer: str, dataset: str, recipe: Facts, name: str, progress: Progress) -> Facts:
    """Train an auto-encoder unless it is there. Returns its card; `recipe` are the fields of a `SparseRecipe`.

    Raises RequestError, MachineryError, and Cancelled if `progress` does; the same call then continues.
    """
    lab = laboratory()
    chosen = lab.dataset(plugin_keys.dataset_named(dataset))
    key = plugin_keys.model_key(model)
    source = find_source(key, lab.model(key), layer, chosen)
    return asdict(train_sparse(lab.settings, source, SparseRecipe(**recipe), name, progress))


def list_trained() -> list[Facts]:
    """The cards of all that were trained here, by name."""
    return [asdict(card) for card in storage.list_cards(settings.STATE)]
