"""Sparse auto-encoders of this installation: training one, measuring one, and which there are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.conf import settings

from workers.jobs import plugin_keys
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress
from workers.record.decoding import encode
from workers.sparse import storage
from workers.sparse.recipe import SparseRecipe
from workers.sparse.report import measure_report
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


def report(name: str, progress: Progress, dataset: str = "") -> Facts:
    """Measure an auto-encoder: a `workers.record.sparse.SparseReport` as plain JSON.

    `dataset` is the key, name or path of what it was trained on, where its name alone does not find it. Raises
    RequestError, MachineryError, and Cancelled if `progress` does.
    """
    lab = laboratory()
    network, card = storage.load_autoencoder(lab.settings.state, name)
    chosen = lab.dataset(plugin_keys.dataset_named(dataset or card.dataset))
    return encode(measure_report(lab.settings, lab.model(card.model_key), chosen, network, card, progress))


def list_trained() -> list[Facts]:
    """The cards of all that were trained here, by name."""
    return [asdict(card) for card in storage.list_cards(settings.STATE)]
