"""Where rows that follow from events are written: `Direct`, each at once; `Bulk`, all of a new run together.

What follows from which event is told by `projections`, for both alike. A run that is imported or forked locks the
database only while what `Bulk.ready` has made ready is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from experiments.core.search_index import texts
from experiments.core.search_index.texts import Text
from experiments.core.units_of_runs import find_unit_of
from experiments.models import Event, Experiment, Hypothesis, Label, Observation, Run, SearchText, TextKind
from experiments.models.insertion import Prepared
from workers.record.tasks import find_task

AT_ONCE = 500
"""Rows that are written by one statement, at most."""


class Direct:
    """Writes each row at once, in the transaction of its event."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._experiments: dict[int, Experiment] = {}

    def add_hypotheses(self, rows: Sequence[Hypothesis]) -> None:
        Hypothesis.objects.bulk_create(rows)

    def add_experiment(self, row: Experiment) -> None:
        row.save(force_insert=True)

    def experiment(self, number: int) -> Experiment:
        """Raises Experiment.DoesNotExist."""
        if number not in self._experiments:
            self._experiments[number] = self.run.experiments.get(number=number)
        return self._experiments[number]

    def find_activations(self, images: Collection[str]) -> Mapping[str, float]:
        """The activations of those of these images that the run has logged, of each when it first was."""
        rows = self.run.observations.filter(image_id__in=images).order_by("-pk")
        return dict(rows.values_list("image_id", "activation"))

    def add_result(self, experiment: Experiment, logged: Sequence[Observation]) -> None:
        """Keep what was changed of an experiment, and what it logged."""
        experiment.save()
        Observation.objects.bulk_create(logged)

    def mark_originals(self, images: Collection[str]) -> None:
        """What the run logged of these images is found as what an edit was made from."""
        self.run.observations.filter(image_id__in=images, is_original=False).update(is_original=True)

    def add_state(self, number: int, state: bytes) -> None:
        """Have what an experiment leaves to the next written with its result."""
        self.experiment(number).state = state

    def add_labels(self, texts: Sequence[str]) -> None:
        """Keep the labels of a conclusion, in order, as those of the run's unit."""
        save_labels(self.run, labels_of(self.run, texts))

    def read_hypothesis_texts(self) -> set[str]:
        """The texts of the hypotheses that were made so far."""
        return set(SearchText.objects.filter(run=self.run, kind=TextKind.HYPOTHESIS).values_list("text", flat=True))

    def titles(self, number: int) -> list[Text]:
        """The titles of the images that an experiment logged, as passages."""
        rows = Observation.objects.filter(experiment__run=self.run, experiment__number=number).order_by("position")
        found = rows.values_list("pk", "title", "prompt")
        return [(TextKind.TITLE, pk, texts.title_of(title, prompt)) for pk, title, prompt in found]

    def add_passages(self, rows: Sequence[SearchText]) -> None:
        texts.write(rows)

    def set_summary(self, normalized: str) -> None:
        texts.write_summary(self.run, normalized)


class Bulk:
    """Gathers the rows of a run that has none yet, and has them written together. Reads and writes nothing before.

    The run itself need not be saved. Raises ValueError for what the database would refuse: a number twice.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.events: list[Event] = []
        self.hypotheses: dict[tuple[int, int], Hypothesis] = {}
        self.experiments: dict[int, Experiment] = {}
        self.observations: list[Observation] = []
        self.places: dict[int, range] = {}
        """For each experiment, where what it logged stands in `observations`."""
        self.first: dict[str, float] = {}
        self.unmarked: dict[str, list[Observation]] = {}
        self.labels: list[Label] = []
        self.passages: list[SearchText] = []
        self.hypotheses_said: set[str] = set()
        self.summary: str | None = None

    def add_hypotheses(self, rows: Sequence[Hypothesis]) -> None:
        for row in rows:
            if self.hypotheses.setdefault((row.round, row.number), row) is not row:
                raise ValueError(f"round {row.round} has two hypotheses with the number {row.number}")

    def add_experiment(self, row: Experiment) -> None:
        if self.experiments.setdefault(row.number, row) is not row:
            raise ValueError(f"there are two experiments with the number {row.number}")

    def experiment(self, number: int) -> Experiment:
        if number not in self.experiments:
            raise Experiment.DoesNotExist(f"there is no experiment {number}")
        return self.experiments[number]

    def find_activations(self, images: Collection[str]) -> Mapping[str, float]:
        return {key: self.first[key] for key in images if key in self.first}

    def add_result(self, experiment: Experiment, logged: Sequence[Observation]) -> None:
        if not logged:
            return
        start = len(self.observations)
        if self.places.setdefault(experiment.number, places := range(start, start + len(logged))) is not places:
            raise ValueError(f"experiment {experiment.number} has two results that logged images")
        self.observations += logged
        for row in logged:
            self.first.setdefault(row.image_id, row.activation)
            if not row.is_original:
                self.unmarked.setdefault(row.image_id, []).append(row)

    def mark_originals(self, images: Collection[str]) -> None:
        for row in [row for key in images for row in self.unmarked.pop(key, ())]:
            row.is_original = True

    def add_state(self, number: int, state: bytes) -> None:
        self.experiment(number).state = state

    def add_labels(self, texts: Sequence[str]) -> None:
        self.labels += labels_of(self.run, texts)

    def read_hypothesis_texts(self) -> set[str]:
        return self.hypotheses_said

    def titles(self, number: int) -> list[Text]:
        """Until they are saved, observations are named by their place."""
        rows = ((place, self.observations[place]) for place in self.places.get(number, ()))
        return [(TextKind.TITLE, place, texts.title_of(row.title, row.prompt)) for place, row in rows]

    def add_passages(self, rows: Sequence[SearchText]) -> None:
        self.passages += rows

    def set_summary(self, normalized: str) -> None:
        self.summary = normalized

    def ready(self) -> Callable[[], None]:
        """Make all rows ready for the database; what is returned writes them and the run, in the transaction under way.

        That is short: of the rows only what the database itself tells is put in then, keys of what they belong to.
        """
        events = Prepared(Event, self.events, ["run_id"])
        hypotheses = Prepared(Hypothesis, self.hypotheses.values(), ["run_id"])
        experiments = Prepared(Experiment, self.experiments.values(), ["run_id"])
        places = [(row.experiment.number, row.position) for row in self.observations]
        observations = Prepared(Observation, self.observations, ["run_id", "experiment_id"])
        passages = texts.Ready(self.passages)
        self.events, self.hypotheses, self.experiments = [], {}, {}
        self.observations, self.passages, self.unmarked = [], [], {}

        def save() -> None:
            self.run.save()
            key = self.run.pk
            for rows in (events, hypotheses, experiments):
                rows.insert([key] * len(rows))
            numbers = dict(Experiment.objects.filter(run=key).values_list("number", "pk"))
            observations.insert([key] * len(places), [numbers[number] for number, _ in places])
            save_labels(self.run, self.labels)
            saved = Observation.objects.filter(run=key).order_by()
            saved_places = saved.values_list("experiment__number", "position", "pk").iterator()
            keys = {(number, position): pk for number, position, pk in saved_places}
            passages.write(key, [keys[place] for place in places])
            if self.summary is not None:
                texts.write_summary(self.run, self.summary)

        return save


RowWriter = Direct | Bulk
"""Where the rows of one run go."""


def labels_of(run: Run, texts: Iterable[str]) -> list[Label]:
    return [Label(text=text, source="run", run=run, position=position) for position, text in enumerate(texts, 1)]


def save_labels(run: Run, labels: Sequence[Label]) -> None:
    """Save labels, as those of the unit that the run is about, if the catalogue still knows it. A verdict is no label
    of the unit."""
    rows = Label.objects.bulk_create(labels, batch_size=AT_ONCE)
    if not find_task(run.task).gives_verdict and (unit := find_unit_of(run)):
        unit.labels.add(*rows)
