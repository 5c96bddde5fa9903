"""Read what a run found out about a function: samples, predictions, intervals of different behaviour; and once the
run has ended, how right its conclusion is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from experiments.models import Run
from workers.record.events import Ended, ExperimentEnded
from workers.record.functions import FunctionScore, Sample, measure_fit, read_exceptions, read_number

KINDS = ("part-0", "part-1", "part-2", "part-4", "part-5")
"""Colours of hypotheses by position; an experiment logs predictions of at most five."""
HIGHEST = 16
"""Words with the highest outputs that a page shows."""
MAX_RECENT_SAMPLES = 30
"""Newest experiments in a summary of a run."""
_NUMBERED = re.compile(r"hypothesis[_ ]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class LoggedSample:
    """An input with its output, and the experiment that logged it."""

    number: int
    round: int
    sample: Sample

    @cached_property
    def place(self) -> tuple[float, float] | None:
        """Return input and output as numbers; None if either is not a number."""
        return _place(self.sample.input, self.sample.output)

    def place_of(self, name: str) -> tuple[float, float] | None:
        """Return the input, and the hypothesis' prediction for it."""
        return _place(self.sample.input, self.sample.predictions.get(name, ""))


def _place(given: str, value: str) -> tuple[float, float] | None:
    x, y = read_number(given), read_number(value)
    return None if x is None or y is None else (x, y)


@dataclass(frozen=True)
class HypothesisFit:
    """A hypothesis that predicted the function's outputs; `words` describe the error of its predictions."""

    name: str
    short: str
    kind: str
    words: str


@dataclass(frozen=True)
class FunctionEvidence:
    """Samples in the order in which they were logged. `exceptions` are intervals where the function behaves
    differently, by the conclusion or the newest hypotheses."""

    run: Run
    samples: Sequence[LoggedSample]
    exceptions: Sequence[tuple[float, float]]
    score: FunctionScore | None

    @property
    def is_numeric(self) -> bool:
        return self.run.layer == "numeric"

    @cached_property
    def highest(self) -> Sequence[tuple[str, float]]:
        """Return the inputs with the highest outputs, each once, for a function from words to numbers."""
        if self.run.layer != "concepts":
            return ()
        known = {each.sample.input: read_number(each.sample.output) or 0.0 for each in self.samples}
        return sorted(known.items(), key=lambda pair: (-pair[1], pair[0]))[:HIGHEST]

    @property
    def newest(self) -> int:
        """Return the number of the experiment that logged last; 0 if none did."""
        return self.samples[-1].number if self.samples else 0

    @cached_property
    def names(self) -> Sequence[str]:
        """Return the hypotheses that made predictions, those of the newest experiment last."""
        # The last ones: older hypotheses may have been refuted since.
        return list(dict.fromkeys(name for each in self.samples for name in each.sample.predictions))[-len(KINDS) :]

    @property
    def fits(self) -> Sequence[HypothesisFit]:
        found = []
        for name, kind in zip(self.names, KINDS, strict=False):
            words = measure_fit([each.sample for each in self.told_by(name)])[name]
            found.append(HypothesisFit(name, shorten(name), kind, words))
        return found

    def told_by(self, name: str) -> Sequence[LoggedSample]:
        """Return the samples of the newest experiment with predictions of this hypothesis."""
        # The hypothesis may have changed since: older predictions are not those of its present text.
        told = [each for each in self.samples if name in each.sample.predictions]
        return [each for each in told if each.number == told[-1].number]


def read_function(run: Run, newest: int | None = None) -> FunctionEvidence:
    """Read all experiments, or the `newest` so many: at most 2,000 samples of each."""
    results = run.events.filter(kind="result").order_by("-seq")
    # Newest first from the database, in order for the reader.
    chosen = list(results if newest is None else results[:newest])[::-1]
    samples = [each for event in chosen for each in _list_samples(event.content)]
    return FunctionEvidence(run, samples, _find_exceptions(run), _read_score(run))


def _read_score(run: Run) -> FunctionScore | None:
    """Return how right the conclusion is, with the truth; None until the run has ended."""
    # The score is part of the last event, with the truth that the row lacks.
    last = run.events.filter(seq=run.last_seq).first() if run.score else None
    return last.content.score if last and isinstance(last.content, Ended) else None


def shorten(name: str) -> str:
    """Shorten "Hypothesis_2" to H2, as pages name it; return any other name unchanged."""
    found = _NUMBERED.fullmatch(name)
    return f"H{found[1]}" if found else name


def _list_samples(content: object) -> Iterator[LoggedSample]:
    if isinstance(content, ExperimentEnded):
        for entry in content.entries:
            yield from (LoggedSample(content.number, content.round, each) for each in entry.samples)


def _find_exceptions(run: Run) -> Sequence[tuple[float, float]]:
    # Once the run has concluded, its conclusion counts; before, the newest round's hypotheses.
    if domain := str(run.conclusion.get("domain") or ""):
        return read_exceptions(domain)
    rounds = run.hypotheses.exclude(status="refuted").order_by("-round", "number").values_list("round", "text")
    listed = list(rounds)
    texts = [text for number, text in listed if number == listed[0][0]]
    return next(filter(None, map(read_exceptions, texts)), [])
