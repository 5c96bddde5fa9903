"""Plausible rows in any number, for measurements and demonstrations.

Everything hangs together (runs, experiments, images with files, observations, labels, what search reads); only the
newest runs have transcripts. Two calls with the same numbers make the same rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from experiments.core.search_index import backend, texts
from experiments.core.search_index.normalize import normalize
from experiments.models import (
    Experiment,
    Image,
    Label,
    Layer,
    Observation,
    Run,
    SearchText,
    TextKind,
    Unit,
    VisionModelRow,
)
from tests.support.seeding import bulk, stories
from tests.support.seeding.images import draw_images
from workers.protocols import Progress

PER_RUN, PER_EXPERIMENT = 100, 10
"""Observations of a run and of an experiment, about."""
AT_ONCE = 20_000
MODELS = {
    "toybox": {"layer1": 16, "layer2": 32, "layer3": 48, "layer4": 64},
    "hf:microsoft/resnet-152": {"layer1": 256, "layer2": 512, "layer3": 1024, "layer4": 2048},
    "hf:openai/clip-vit-base-patch32": {f"layer{number}": 768 for number in range(1, 13)},
}
COLOURS = ("red", "green", "blue", "yellow", "purple", "white", "black", "orange", "pink", "brown")
THINGS = ("ball", "cube", "cone", "car", "tree", "house", "snowman", "boat", "dog", "bird", "clock", "bottle", "wheel")
GROUNDS = ("on grass", "on sand", "in snow", "at night", "on water", "in fog", "near a fence", "under a lamp")
RARE, RARE_EVERY = "okapi", 150_011
"""A word that few titles have."""
OBSERVED = (
    *("id", "run_id", "experiment_id", "position", "title", "activation", "image_id", "masked_id", "origin"),
    *("prompt", "seed", "original", "change"),
)
WRITTEN = ("run_id", "model", "layer", "unit", "kind", "seq", "anchor", "time", "text", "normalized", "id")


@dataclass(frozen=True)
class Seeded:
    runs: int
    observations: int


def is_real() -> bool:
    """Whether the database holds runs that this module did not make."""
    return Run.objects.count() > Run.objects.filter(options__seeded=True).count()


def seed(observations: int, runs: int, progress: Progress) -> Seeded:
    """Add so many observations in so many runs. Nothing is undone if it is interrupted."""
    chance = random.Random(observations)
    bulk.hurry()
    images = draw_images()
    systems = list(systems_of(catalogue()))
    without_indexes()
    asked = make_runs(runs, observations, systems, chance)
    made = make_experiments(asked)
    done = 0
    for part in in_parts(observation_rows(made, images, chance), AT_ONCE):
        with transaction.atomic():
            bulk.insert(Observation, OBSERVED, part)
            keep([title_passage(row, made.runs) for row in part])
        progress("observations", done := done + len(part), observations)
    settle_figures(asked)
    with transaction.atomic():
        keep([passage for run in asked for passage in stories.passages(run)])
        texts.keep_summaries(asked)
    bulk.renumber(Observation, SearchText)
    make_indexes()
    stories.tell(asked)
    bulk.settle()
    return Seeded(len(asked), done)


def without_indexes() -> None:
    """PostgreSQL's indexes for search are made anew at the end, which is much quicker."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX search_texts_trigrams, search_texts_ngrams")


def make_indexes() -> None:
    if connection.vendor == "postgresql":
        migration = import_module("experiments.migrations.0002_search_and_audit")
        with connection.cursor() as cursor:
            for statement in migration.POSTGRES_INDEX:
                if statement.startswith("CREATE INDEX"):
                    cursor.execute(statement)


def catalogue() -> list[Layer]:
    """The layers that runs are about; rows that workers have written stay."""
    found = []
    for name, layers in MODELS.items():
        model, _ = VisionModelRow.objects.get_or_create(name=name, defaults={"label": name, "available": False})
        for position, (layer, units) in enumerate(layers.items()):
            known = {"position": position, "path": layer, "kind": "conv", "units": units}
            found.append(Layer.objects.get_or_create(model=model, name=layer, defaults=known)[0])
    return found


def systems_of(layers: Sequence[Layer]) -> Iterator[Unit]:
    """Up to 48 units of every layer, of each layer in turn."""
    for layer in layers:
        Unit.objects.bulk_create((Unit(layer=layer, number=n) for n in range(48)), ignore_conflicts=True)
    units = Unit.objects.select_related("layer__model").filter(layer__in=layers, number__lt=48)
    for unit in units.order_by("number", "layer__model__name", "layer__position"):
        if unit.number < unit.layer.units:
            yield unit


def make_runs(count: int, observations: int, systems: Sequence[Unit], chance: random.Random) -> list[Run]:
    owner = User.objects.filter(member__isnull=False).order_by("pk").first()
    owner = owner or User.objects.get_or_create(username="seeded", defaults={"is_active": False})[0]
    now, left = timezone.now(), observations
    rows = []
    for number in range(count):
        # A few units are asked about much more often than the others.
        unit = systems[int(len(systems) * chance.random() ** 2)]
        share = left if number == count - 1 else min(left, max(1, round(left / (count - number))))
        left -= share
        rows.append(stories.run_of(owner, unit, share, now - timedelta(minutes=7 * (count - number)), chance))
    made = Run.objects.bulk_create(rows, batch_size=500)
    label(made, {(each.layer.model.name, each.layer.name, each.number): each.pk for each in systems})
    return made


def label(runs: Sequence[Run], units: dict[tuple[str, str, int], int]) -> None:
    """The labels of concluded runs, on their units."""
    rows = [
        Label(text=text, source="run", run=run, position=position)
        for run in runs
        for position, text in enumerate(run.labels, 1)
    ]
    made = Label.objects.bulk_create(rows, batch_size=500)
    link = Label.units.through
    known = {run.pk: units[run.model, run.layer, run.unit] for run in runs}
    link.objects.bulk_create((link(label_id=each.pk, unit_id=known[each.run_id or 0]) for each in made), batch_size=500)


@dataclass(frozen=True)
class Made:
    experiments: Sequence[Experiment]
    runs: dict[int, Run]


def make_experiments(runs: Sequence[Run]) -> Made:
    rows = []
    for run in runs:
        numbers = max(1, -(-run.observation_count // PER_EXPERIMENT))
        run.experiment_count = run.rounds = numbers
        for number in range(1, numbers + 1):
            share = min(PER_EXPERIMENT, run.observation_count - PER_EXPERIMENT * (number - 1))
            rows.append(stories.experiment_of(run, number, share))
    return Made(Experiment.objects.bulk_create(rows, batch_size=500), {run.pk: run for run in runs})


def observation_rows(made: Made, images: Sequence[tuple[Image, str]], chance: random.Random) -> Iterator[tuple]:  # type: ignore[type-arg]
    """Rows of `OBSERVED`; the first experiment of a run shows exemplars, of the others every third pair is an edit."""
    key = bulk.next_key(Observation)
    for experiment in made.experiments:
        before: tuple[float, str] | None = None
        for position in range(1, experiment.observation_count + 1):
            image, masked = images[chance.randrange(len(images))]
            origin = "exemplar" if experiment.number == 1 else "edited" if before else "generated"
            if origin == "generated" and position % 3 == 0 and position < experiment.observation_count:
                origin = "original"
            title = title_of(chance, key)
            activation = round(chance.gammavariate(2.0, 6.0) - 1.0, 4)
            original, change = (before[1], activation - before[0]) if before else ("", None)
            prompt, seeded = (title, chance.randrange(10_000)) if origin != "exemplar" else ("", None)
            yield (
                *(key, experiment.run_id, experiment.pk, position, title, activation, image.key, masked, origin),
                *(prompt, seeded, original, change),
            )
            before = (activation, image.key) if origin == "original" else None
            key += 1


def title_of(chance: random.Random, key: int) -> str:
    thing = RARE if key % RARE_EVERY == 7 else chance.choice(THINGS)
    return f"a {chance.choice(COLOURS)} {thing} {chance.choice(GROUNDS)}"


def title_passage(row: Sequence, runs: dict[int, Run]) -> tuple[Run, str, int, datetime, str]:  # type: ignore[type-arg]
    run = runs[row[1]]
    return run, TextKind.TITLE, row[0], run.created, row[4]


def keep(passages: Sequence[tuple[Run, str, int | None, datetime, str]]) -> None:
    """Write passages (run, kind, anchor, time, text) and have them found."""
    first = bulk.next_key(SearchText)
    rows = []
    for key, (run, kind, anchor, time, text) in enumerate(passages, first):
        moment = connection.ops.adapt_datetimefield_value(time)
        system = (run.pk, run.model, run.layer, run.unit)
        rows.append((*system, str(kind), 0, anchor, moment, text, normalize(text), key))
    bulk.insert(SearchText, WRITTEN, rows)
    backend.get_backend().index([(row[-1], row[-2]) for row in rows])


def settle_figures(runs: Sequence[Run]) -> None:
    """The figures of runs and experiments that follow from their observations."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE experiments_experiment SET best_activation = (SELECT max(activation) FROM experiments_observation "
            "WHERE experiment_id = experiments_experiment.id) WHERE best_activation IS NULL AND observation_count > 0"
        )
    best = dict(Observation.objects.order_by().values_list("run").annotate(Max("activation")))
    for run in runs:
        run.best_activation, run.exemplar_mean = best.get(run.pk), 22.0
    Run.objects.bulk_update(runs, ["best_activation", "exemplar_mean", "experiment_count", "rounds"], batch_size=200)


def in_parts(rows: Iterator[tuple], size: int) -> Iterator[list[tuple]]:  # type: ignore[type-arg]
    part = []
    for row in rows:
        part.append(row)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part
