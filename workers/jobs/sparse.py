"""Sparse autoencoders of this installation: train one, add a published one, measure it, list them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from experiments.models import Job, SparseAutoencoderRow
from workers import registry
from workers.errors import RequestError
from workers.jobs import plugin_keys, registration
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress, VisionModel
from workers.record.decoding import encode
from workers.record.sparse import RECIPE
from workers.sparse import storage, superposition
from workers.sparse.published.adding import add_published
from workers.sparse.recipe import SparseRecipe
from workers.sparse.report import measure_report
from workers.sparse.training import SparseSource, find_source, train_sparse

Facts = dict[str, Any]
SCENES, HELD_OUT_SCENES = 20_000, 5_000
"""Numbers of scenes whose concepts are put in superposition: for training, and for measuring."""


def train(
    model: str, layer: str, dataset: str, recipe: Facts, name: str, progress: Progress, by: User | None = None
) -> Facts:
    """Train an autoencoder unless it exists, and offer it as a model. `recipe` holds fields of a `SparseRecipe`.

    Return its card. Raises RequestError, MachineryError, and Cancelled if `progress` does; the same call then resumes.
    """
    source = _find_source(model, layer, dataset)
    card = asdict(train_sparse(laboratory().settings, source, SparseRecipe(**recipe), name, progress))
    register(card, by)
    return card


def add(
    path: Path, model: str, layer: str, dataset: str, name: str, progress: Progress, by: User | None = None
) -> Facts:
    """Add the published autoencoder in a folder or file to a layer, and offer it as a model. Return its card.

    Raises RequestError, MachineryError, and Cancelled if `progress` does; then nothing is kept.
    """
    source = _find_source(model, layer, dataset)
    card = asdict(add_published(laboratory().settings, source, path, name, progress))
    register(card, by)
    return card


def _find_source(model: str, layer: str, dataset: str) -> SparseSource:
    """Return the layer of a model over a dataset, by keys or names. Raises RequestError."""
    lab = laboratory()
    key = plugin_keys.model_key(model)
    below = lab.model(key)
    _refuse_stack(key, below)
    dataset_key = plugin_keys.dataset_named(dataset)
    return find_source(key, below, layer, dataset_key, lab.dataset(dataset_key))


def _refuse_stack(key: str, model: VisionModel) -> None:
    """Raise RequestError for an autoencoder, whose units already are latents."""
    if base := getattr(model, "base", ""):
        raise RequestError(
            f"{key} is itself an auto-encoder: its units are latents already. Name the model below it, {base}."
        )


@transaction.atomic
def register(card: Facts, by: User | None) -> None:
    """Save the model "sae:NAME" with its layer and its card."""
    row = registration.model(f"sae:{card['name']}", by)
    # The same fingerprint has the same weights.
    known = SparseAutoencoderRow.objects.filter(model=row, card__fingerprint=card["fingerprint"]).exists()
    fresh: Facts = {} if known else {"report": {}, "measured": None}  # A report of other weights is out of date
    SparseAutoencoderRow.objects.update_or_create(model=row, defaults={"card": card} | fresh)


def train_for(job: Job, progress: Progress) -> str:
    """Run a job of kind "sparse"."""
    wish: Any = job.options
    recipe = {name: wish[name] for name in RECIPE if name in wish}
    name = wish.get("name", "")
    card = train(job.subject, wish["layer"], wish["dataset"], recipe, name, progress, job.asked_by)
    if not SparseAutoencoderRow.objects.filter(model__name=f"sae:{card['name']}", measured__isnull=False).exists():
        report(card["name"], progress)
    quality = card["quality"]
    return (
        f"sae:{card['name']} has {card['latents']:,} latents and is in the New run form: {quality['unexplained']:.1%} "
        f"of variance unexplained with {quality['active']:.1f} active latents, {quality['dead']:.1%} of latents dead."
    )


def measure_for(job: Job, progress: Progress) -> str:
    """Run a job of kind "measure"."""
    name = job.subject.removeprefix("sae:")
    found = report(name, progress)
    source = storage.find_card(settings.STATE, name).source
    unseen = "" if source else " that its training never saw"
    return f"{job.subject} was measured on {found['images']:,} images{unseen}."


def report(name: str, progress: Progress) -> Facts:
    """Measure an autoencoder and save the result: a `workers.record.sparse_report.SparseReport` as plain JSON.

    Raises RequestError, MachineryError, and Cancelled if `progress` does.
    """
    lab = laboratory()
    network, card = storage.load_autoencoder(lab.settings.state, name)
    model, dataset = lab.model(card.model_key), lab.dataset(card.dataset_key)
    found: Facts = encode(measure_report(lab.settings, model, dataset, network, card, progress))
    register(asdict(card), None)
    SparseAutoencoderRow.objects.filter(model__name=f"sae:{name}").update(report=found, measured=timezone.now())
    progress(f"Measured sae:{name}", 1, 1)
    return found


def find_superposed(seeds: Sequence[int], wish: Facts, progress: Progress) -> Facts:
    """Measure how many concepts in superposition an autoencoder recovers, for each seed. `wish` holds fields of a
    `superposition.Superposition`.

    Concepts are drawn independently, and as in toybox scenes. Raises MachineryError, and Cancelled if `progress` does.
    """
    shown, fresh = registry.load(registry.CONCEPT_PRESENCE, "toybox")(SCENES, HELD_OUT_SCENES, progress)
    concepts = shown.shape[1]
    found: dict[str, list[superposition.Recovery]] = {"independent": [], "scenes": []}
    for seed in seeds:
        trial = superposition.Superposition(seed=seed, concepts=concepts, **wish)
        # Even and odd seeds, so that no two seeds share a draw.
        drawn = [superposition.draw_independently(concepts, each) for each in (2 * seed, 2 * seed + 1)]
        # Different draws for training and measuring
        found["independent"].append(superposition.find_recovery(trial, drawn[0], drawn[1], progress))
        rows = [superposition.draw_rows(each, seed) for each in (shown, fresh)]
        found["scenes"].append(superposition.find_recovery(trial, rows[0], rows[1], progress))
    told = {source: [superposition.summarise(each) for each in recoveries] for source, recoveries in found.items()}
    return {
        "trial": asdict(superposition.Superposition(concepts=concepts, **wish)),
        "seeds": list(seeds),
        "sources": told,
    }


def list_all() -> list[Facts]:
    """Return the cards of all autoencoders trained or added here, by name."""
    return [asdict(card) for card in storage.list_cards(settings.STATE)]
