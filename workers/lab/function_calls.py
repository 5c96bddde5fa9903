"""`system` and `tools` of a run that studies a function. Their docstrings are the reference the agent reads.

Made by `laboratory` for each experiment; reached by programs through `program_api`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from workers.errors import ToolMisuse
from workers.record.experiments import LogEntry
from workers.record.functions import Sample, to_json
from workers.record.systems import OrdinaryActivations, SystemSpec

MAX_SAMPLES = 2_000
"""Maximum number of inputs that one experiment may log."""
MAX_HYPOTHESES = 5
"""Maximum number of hypotheses whose predictions one experiment may log."""
_NAME_CHARS = 60
TEXT_CHARS = 40_000
"""Maximum characters of text that one experiment may log."""


class CallableSubject(Protocol):
    """A thing under study that is called."""

    spec: SystemSpec

    @property
    def domain(self) -> str: ...

    def call(self, inputs: Sequence[Any], number: int) -> list[Any]: ...


class FunctionSystem:
    """The function under study. You never see its code; it may be noisy, and may answer differently in an interval.

    system.family: "numeric" for a function of numbers, "strings" for one of texts, "concepts" for one from words to
    numbers, "relations" for one from words to words.
    system.domain: the inputs that it takes.
    """

    def __init__(self, subject: CallableSubject, earlier_calls: int) -> None:
        self.subject = subject
        self.answers: dict[str, set[str]] = {}
        """Input -> what it gave in this experiment, both as JSON."""
        self.measured = 0
        """Inputs that it was called with."""
        self._number = earlier_calls

    def call(self, inputs: Sequence[Any]) -> list[Any]:
        """Call the function once for each input.

        Returns the outputs in the order of the inputs. At most 1,000 inputs a call. nan is an output like any other:
        there the function is undefined. The same input may give another output the next time, where it is noisy.

        Example:
            inputs = [-100, -10, -1, 0, 1, 10, 100] if system.family == "numeric" else ["abc", "Two words", "A1 b2"]
            outputs = system.call(inputs)
            tools.log_experiment(inputs, outputs, "a first look at the whole domain")
        """
        # The number of the call decides the noise, so a repeated experiment gives the same outputs.
        self._number += 1
        outputs = self.subject.call(inputs, self._number)
        # As JSON, so that NaN and lists can be compared and looked up.
        for given, answer in zip(inputs, outputs, strict=True):
            self.answers.setdefault(to_json(given), set()).add(to_json(answer))
        self.measured += len(outputs)
        return outputs


class FunctionTools:
    """What experiments on a function can be logged with. A wrong argument raises ToolError."""

    lacks: frozenset[str] = frozenset()
    exemplar_mean: float | None = None
    best: float | None = None
    ordinary: OrdinaryActivations | None = None

    def __init__(self, system: FunctionSystem, earlier: Sequence[LogEntry] = ()) -> None:
        self.entries: list[LogEntry] = []
        self._system = system
        self._earlier = tuple(earlier)

    @property
    def measured(self) -> int:
        return self._system.measured

    def log_experiment(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        text: str = "",
        predictions: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        """Log inputs with the outputs that `system.call` gave for them, and what you make of them.

        What is logged comes back to you, and is what people see of the experiment. At most 2,000 inputs an experiment.
        predictions: name of a hypothesis -> what it says for each input, for at most 5 hypotheses. How far each is from
        the outputs comes back to you, and people see it drawn beside them.

        Example:
            inputs = list(range(-128, 129, 8)) if system.family == "numeric" else ["aaa", "bbb", "aba", "ABA"]
            same = {"Hypothesis_1": inputs}
            tools.log_experiment(inputs, system.call(inputs), "an even spread; does it return its input?", same)
        """
        predictions = _check_lengths(inputs, outputs, predictions)
        logged = sum(len(entry.samples) for entry in self.entries)
        if logged + len(inputs) > MAX_SAMPLES:
            raise ToolMisuse(
                f"This experiment has logged {logged:,} inputs and {len(inputs):,} more came; one experiment logs "
                f"{MAX_SAMPLES:,} at most. Log those that tell most."
            )
        told = [{name: to_json(values[place]) for name, values in predictions.items()} for place in range(len(inputs))]
        samples = tuple(self._sample(*each) for each in zip(inputs, outputs, told, strict=True))
        # Cut, not refused: the samples are what matters.
        left = TEXT_CHARS - sum(len(entry.text) for entry in self.entries)
        self.entries.append(LogEntry((), str(text)[: max(0, left)], samples))

    save_experiment_log = log_experiment

    @property
    def experiment_log(self) -> list[dict[str, Any]]:
        """Every entry of the run so far, as plain data: {"samples": [{"input": …, "output": …}], "text": …}."""
        return [
            {
                "samples": [
                    {"input": json.loads(each.input), "output": json.loads(each.output)} for each in entry.samples
                ],
                "text": entry.text,
            }
            for entry in (*self._earlier, *self.entries)
        ]

    def _sample(self, given: Any, output: Any, predictions: Mapping[str, str]) -> Sample:
        """Return a logged input with its output. Raises ToolMisuse for an output that the function did not give."""
        kept = Sample(to_json(given), to_json(output), predictions)
        known = self._system.answers.get(kept.input, set())
        # What is logged must be what was measured.
        if kept.output not in known:
            gave = f"gave {' or '.join(sorted(known)[:3])}" if known else "was not called with it in this experiment"
            raise ToolMisuse(
                f"The output {kept.output[:80]} is not what the function gave for {kept.input[:80]}: it {gave}. Log "
                "the outputs of system.call as they are, and put what you compute from them into the text."
            )
        return kept


def _check_lengths(inputs: Any, outputs: Any, predictions: Any) -> dict[str, Sequence[Any]]:
    """Return the predictions by name. Raises ToolMisuse unless all are lists of the same length."""
    if not isinstance(inputs, list | tuple) or not isinstance(outputs, list | tuple):
        raise ToolMisuse("inputs and outputs must be lists, as system.call takes and gives them.")
    if len(inputs) != len(outputs):
        raise ToolMisuse(f"There are {len(inputs)} inputs and {len(outputs)} outputs. Give one output an input.")
    if predictions is None:
        return {}
    if not isinstance(predictions, dict) or not all(isinstance(each, list | tuple) for each in predictions.values()):
        raise ToolMisuse("predictions must be a dictionary, such as {'Hypothesis_1': [1, 2, 3]}: a list by name.")
    if len(predictions) > MAX_HYPOTHESES:
        raise ToolMisuse(f"There are predictions of {len(predictions)} hypotheses; {MAX_HYPOTHESES} are kept.")
    for name, values in predictions.items():
        if len(values) != len(inputs):
            raise ToolMisuse(f"{str(name)[:_NAME_CHARS]!r} has {len(values)} predictions for {len(inputs)} inputs.")
    # Cut: the name is drawn beside a curve.
    return {str(name)[:_NAME_CHARS]: values for name, values in predictions.items()}
