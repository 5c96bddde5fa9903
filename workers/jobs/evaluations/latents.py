"""Neurons against latents: does a sparse autoencoder help? Random active units of a layer, and random active latents of
its autoencoders, are labelled and tested in the same way.

Like AIM, also label each unit by the latent that adds most to it. Autoencoders with several k can be compared at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from experiments.models import Evaluation, EvaluationItem, Layer
from workers.errors import RequestError
from workers.jobs.evaluations.evaluation_type import EvaluationType, find_layers, make_item
from workers.jobs.evaluations.latent_figures import CARDS, LATENTS, MATCHED, NEURONS, summarise
from workers.jobs.evaluations.pairwise_judging import finish_labels
from workers.jobs.evaluations.sources import AGENT, LATENT, ONE_SHOT, find_dataset
from workers.jobs.evaluations.units import draw_alive
from workers.jobs.laboratory import laboratory
from workers.metrics.ranking import measure_choices
from workers.protocols import LatentModel, Progress

_UNIFORM = 1_000
"""Number of evenly drawn images in a check. After them come images that the label describes."""


def _plan(evaluation: Evaluation, progress: Progress) -> list[EvaluationItem]:
    """Plan units and latents in turn; labels of units by latents come last."""
    options = evaluation.options
    model, names = str(options.get("model") or ""), [str(each) for each in options.get("autoencoders") or []]
    layer = _find_layer(model, str((options.get("layers") or [""])[0]))
    dataset = find_dataset(evaluation, model)
    laboratory().index(model, dataset).prepare([layer.name], progress)
    count = int(options.get("units") or evaluation.row_of_kind.units)
    units = sorted(draw_alive(layer, dataset, count, f"neurons {evaluation.seed} {layer.name}"))
    if not units:
        return []
    # A row for each unit, filled up with latents, so that an unfinished evaluation compares both.
    rows = [list(_make_items(layer, number, NEURONS)) for number in units]
    late: list[EvaluationItem] = []
    evaluation.prepared = {**evaluation.prepared, CARDS: [_describe(name) for name in names]}
    for name in names:
        own = _find_layer(name, layer.name)
        laboratory().index(name, dataset).prepare([own.name], progress)
        drawn = sorted(draw_alive(own, dataset, count, f"latents {evaluation.seed} {name}"))
        # The latents that add most to the units need labels too, unless they were drawn anyway
        adding = {unit: _find_latent(name, layer, dataset, unit) for unit in units}
        for at, latent in enumerate(drawn):
            # More latents than units: the last row takes the rest.
            rows[min(at, len(rows) - 1)] += _make_items(own, latent, LATENTS)
        matched = sorted({each for each in adding.values() if each is not None} - set(drawn))
        for at, latent in enumerate(matched):
            rows[min(at, len(rows) - 1)].append(make_item(own, latent, MATCHED, AGENT))
        # A unit without such a latent keeps an item, which says that it lacks a label.
        told = {unit: {} if latent is None else {LATENT: str(latent)} for unit, latent in adding.items()}
        late += [make_item(layer, unit, NEURONS, name, **told[unit]) for unit in units]
    return [*(item for row in rows for item in row), *late]


def _find_layer(model: str, name: str) -> Layer:
    """Return a layer by name. Raises RequestError, UnknownName, MissingPart."""
    found = next((each for each in find_layers(model) if each.name == name), None)
    if found is None:
        raise RequestError(f"{model} has no layer {name!r} any more. Start a new evaluation.")
    return found


def _make_items(layer: Layer, number: int, group: str) -> Iterator[EvaluationItem]:
    for source in (AGENT, ONE_SHOT):
        yield make_item(layer, number, group, source)


def _find_latent(name: str, layer: Layer, dataset: str, unit: int) -> int | None:
    """Return the latent that adds most to a unit's exemplars."""
    index = laboratory().index(layer.model.name, dataset)
    images = [index.picture(each).image for each in index.unit(layer.name, unit).positions]
    return cast("LatentModel", laboratory().model(name)).find_strongest(images, unit)


def _describe(name: str) -> dict[str, object]:
    """Return the description of an autoencoder."""
    # As it is now: another one may get its name later.
    row = Layer.objects.select_related("model__autoencoder").get(model__name=name).model.autoencoder
    quality = row.card["quality"]
    return {
        "name": name,
        "k": row.card["k"],
        "latents": row.card["latents"],
        **{key: quality[key] for key in ("unexplained", "active", "dead")},
    }


def _score(evaluation: Evaluation, item: EvaluationItem, progress: Progress) -> None:
    """Score two-alternative forced choice by the label, if there is one."""
    del evaluation, progress
    natural = (item.label_check.result.get("natural") if item.label_check else None) or {}
    acts, said = (natural.get(name) or [] for name in ("activations", "expected"))
    # Only the evenly drawn ones: later images were chosen by the label itself.
    found = measure_choices(acts[:_UNIFORM], said[:_UNIFORM]) if acts else None
    if found is not None:
        item.scores = {**item.scores, "choice": found}


EVALUATION_TYPE = EvaluationType(_plan, summarise, _score, finish=finish_labels)
