"""Write derived rows: `Direct` writes each at once; `Bulk` writes all rows of a new run together.

`projections` decides for both which rows follow from an event. Importing or forking a run locks the database only
while what `Bulk.ready` prepared is written.
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
"""Maximum rows per statement."""


class Direct:
    """Write each row at once, in the transaction of its event."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._experiments: dict[int, Experiment] = {}

    def add_hypotheses(self, rows: Sequence[Hypothesis]) -> None:
        Hypothesis.objects.bulk_create(rows)

    def add_experiment(self, row: Experiment) -> None:
        row.save(force_insert=True)

    def experiment(self, number: int) -> Experiment:
        """Return an experiment of the run. Raises Experiment.DoesNotExist."""
        if number not in self._experiments:
            self._experiments[number] = self.run.experiments.get(number=number)
        return self._experiments[number]

    def find_activations(self, images: Collection[str]) -> Mapping[str, float]:
        """Return the activations of those of these images that the run has logged, each from when it was first
        logged."""
        # Newest first, so that the first activation of an image overwrites the later ones in the dictionary.
        rows = self.run.observations.filter(image_id__in=images).order_by("-pk")
        return dict(rows.values_list("image_id", "activation"))

    def add_result(self, experiment: Experiment, logged: Sequence[Observation]) -> None:
        """Save the changed fields of an experiment, and what it logged."""
        experiment.save()
        Observation.objects.bulk_create(logged)

    def mark_originals(self, images: Collection[str]) -> None:
        """Mark the run's observations of these images as originals of an edit."""
        self.run.observations.filter(image_id__in=images, is_original=False).update(is_original=True)

    def add_state(self, number: int, state: bytes) -> None:
        """Save the state that an experiment leaves to the next one, together with its result."""
        self.experiment(number).state = state

    def add_labels(self, texts: Sequence[str]) -> None:
        """Save the labels of a conclusion, in order, as labels of the run's unit."""
        save_labels(self.run, labels_of(self.run, texts))

    def read_hypothesis_texts(self) -> set[str]:
        """Return the texts of the hypotheses so far."""
        return set(SearchText.objects.filter(run=self.run, kind=TextKind.HYPOTHESIS).values_list("text", flat=True))

    def titles(self, number: int) -> list[Text]:
        """Return the titles of the images that an experiment logged, as passages."""
        rows = Observation.objects.filter(experiment__run=self.run, experiment__number=number).order_by("position")
        found = rows.values_list("pk", "title", "prompt")
        return [(TextKind.TITLE, pk, texts.title_of(title, prompt)) for pk, title, prompt in found]

    def add_passages(self, rows: Sequence[SearchText]) -> None:
        texts.write(rows)

    def set_summary(self, normalized: str) -> None:
        texts.write_summary(self.run, normalized)


class Bulk:
    """Collect the rows of a run that has none yet, and write them together. Reads and writes nothing before that.

    The run itself need not be saved. Raises ValueError for what the database would refuse, such as a number used
    twice.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.events: list[Event] = []
        self.hypotheses: dict[tuple[int, int], Hypothesis] = {}
        self.experiments: dict[int, Experiment] = {}
        self.observations: list[Observation] = []
        self.places: dict[int, range] = {}
        """For each experiment, the positions in `observations` of what it logged."""
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
        """Return the titles of an experiment's images. Until they are saved, observations are named by their
        position."""
        rows = ((place, self.observations[place]) for place in self.places.get(number, ()))
        return [(TextKind.TITLE, place, texts.title_of(row.title, row.prompt)) for place, row in rows]

    def add_passages(self, rows: Sequence[SearchText]) -> None:
        self.passages += rows

    def set_summary(self, normalized: str) -> None:
        self.summary = normalized

    def ready(self) -> Callable[[], None]:
        """Prepare all rows, and return a function that writes them and the run in the transaction under way.

        The write is short: it fills in only values that the database assigns, the keys of parent rows.
        """
        events = Prepared(Event, self.events, ["run_id"])
        hypotheses = Prepared(Hypothesis, self.hypotheses.values(), ["run_id"])
        experiments = Prepared(Experiment, self.experiments.values(), ["run_id"])
        places = [(row.experiment.number, row.position) for row in self.observations]
        observations = Prepared(Observation, self.observations, ["run_id", "experiment_id"])
        passages = texts.Ready(self.passages)
        # A large run is not held in memory twice.
        self.events, self.hypotheses, self.experiments = [], {}, {}
        self.observations, self.passages, self.unmarked = [], [], {}

        def save() -> None:
            # 1. The run, whose key all other rows need.
            self.run.save()
            key = self.run.pk
            # 2. Rows that need no other key.
            for rows in (events, hypotheses, experiments):
                rows.insert([key] * len(rows))
            # 3. Observations, which need the keys of their experiments.
            numbers = dict(Experiment.objects.filter(run=key).values_list("number", "pk"))
            observations.insert([key] * len(places), [numbers[number] for number, _ in places])
            # 4. Labels of the run's unit.
            save_labels(self.run, self.labels)
            # 5. Passages for the search, which need the keys of the observations.
            saved = Observation.objects.filter(run=key).order_by()
            saved_places = saved.values_list("experiment__number", "position", "pk").iterator()
            keys = {(number, position): pk for number, position, pk in saved_places}
            passages.write(key, [keys[place] for place in places])
            if self.summary is not None:
                texts.write_summary(self.run, self.summary)

        return save


RowWriter = Direct | Bulk
"""Writer of the rows of one run."""


def labels_of(run: Run, texts: Iterable[str]) -> list[Label]:
    return [Label(text=text, source="run", run=run, position=position) for position, text in enumerate(texts, 1)]


def save_labels(run: Run, labels: Sequence[Label]) -> None:
    """Save labels as labels of the run's unit, if the catalogue still has it. A verdict is no label of the unit."""
    rows = Label.objects.bulk_create(labels, batch_size=AT_ONCE)
    if not find_task(run.task).gives_verdict and (unit := find_unit_of(run)):
        unit.labels.add(*rows)
