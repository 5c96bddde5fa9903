"""The scripted baseline as a backbone: it studies a function in rounds, as a language model does, without one.

The baselines call a function freely. Here each call is an experiment: the conversation answers the first calls, and the
first call without an answer becomes the next program.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from workers.errors import UnknownName
from workers.functions.baselines import STUDIES, FunctionAnswer, Guess, StudiedFunction
from workers.protocols import Emit, LabSettings, Message, Reply
from workers.record.functions import WORD_FAMILIES
from workers.record.limits import Usage

if TYPE_CHECKING:
    from PIL.Image import Image

_EXPERIMENT = re.compile(r"^Experiment \d+: ", re.MULTILINE)
# A result begins with a number, or with a text in quotation marks
_LINE = re.compile(r"^\d+\. (?=[-\d\"])", re.MULTILINE)
_ARROW = " → "
_FAMILY = re.compile(rf"\bfunction \d+ of ({'|'.join(STUDIES)})\b")
_PROGRAM = """[HYPOTHESIS LIST]:
Hypothesis_1: {hypothesis}

[CODE]:
```python
def run_experiment(system, tools):
    \"\"\"{title}\"\"\"
    inputs = {inputs}
    tools.log_experiment(inputs, system.call(inputs), {title!r})
```"""
_TEST = """[HYPOTHESIS LIST]:
Hypothesis_1: {hypothesis}

[CODE]:
```python
{code}


def run_experiment(system, tools):
    \"\"\"{title}\"\"\"
    inputs = {inputs}
    predictions = {{"Hypothesis_1": [f(each) for each in inputs]}}
    tools.log_experiment(inputs, system.call(inputs), {title!r}, predictions)
```"""
"""A program that says beforehand what comes of it."""
_CONCLUSION = """[DESCRIPTION]: {0.description}
[DOMAIN]: {0.domain}
[CODE]:
```python
{1}
```"""
# An answer must have code; this one gives nothing
_UNKNOWN = "def f(x):\n    return None"

Answers = list[tuple[Any, Any]]
"""Inputs of one experiment with their outputs."""


class _NeedsCallError(Exception):
    """The next call has no answer yet."""

    def __init__(self, inputs: Sequence[Any], place: int, guess: Guess | None) -> None:
        super().__init__(place)
        self.inputs = inputs
        self.place = place
        self.guess = guess


class FunctionScientist:
    """See `protocols.Backbone`. The same conversation gives the same reply. Words count as tokens."""

    label = "Scripted baseline for functions (no language model)"
    sees = False
    price_known = True

    def reply(self, messages: Sequence[Message], load: Callable[[str], Image], emit: Emit, seed: int) -> Reply:
        """Return the next reply. Raises what `emit` raises."""
        del load, seed
        text = _plan_reply(messages)
        emit(text)
        heard = sum(len(message.text.split()) for message in messages)
        return Reply(text, Usage(prompt_tokens=heard, completion_tokens=len(text.split())))


def _plan_reply(messages: Sequence[Message]) -> str:
    # The first two messages hold the instructions and the task; results come after them
    asked = "\n".join(message.text for message in messages[:2])
    family = found[1] if (found := _FAMILY.search(asked)) else "numeric"
    results = [each for message in messages[2:] if message.role == "user" for each in _read_results(message.text)]
    try:
        # The whole study is played again from the start: the results so far answer its first calls
        answer = STUDIES[family](_replay(results))
    except _NeedsCallError as needed:
        return _write_program(needed)
    except _RefusedError:
        answer = FunctionAnswer("Unknown: an experiment gave no outputs.", "unknown", "")
    # Functions of words are judged by the description alone
    if family in WORD_FAMILIES:
        return f"[DESCRIPTION]: {answer.description}"
    return _CONCLUSION.format(answer, answer.code.rstrip() or _UNKNOWN)


class _RefusedError(Exception):
    """An experiment did not give what it was made for."""


def _replay(results: Sequence[Answers]) -> StudiedFunction:
    """Return a call that is answered by the experiments in their order."""
    left: Iterator[tuple[int, Answers]] = iter(enumerate(results))

    def call(inputs: Sequence[Any], guess: Guess | None = None) -> list[Any]:
        place, known = next(left, (len(results), None))
        if known is None:
            raise _NeedsCallError(inputs, place, guess)
        # A result that was cut, or of other inputs, would shift all answers that follow
        if [given for given, _ in known] != list(inputs):
            raise _RefusedError
        return [output for _, output in known]

    return call


def _read_results(text: str) -> Iterator[Answers]:
    """Yield what each experiment logged, of a message that tells results."""
    for part in _EXPERIMENT.split(text)[1:]:
        yield [pair for match in _LINE.finditer(part) if (pair := _read_line(part[match.end() :]))]


def _read_line(rest: str) -> tuple[Any, Any] | None:
    """Return input and output of "1.5 → 3"; None for another line."""
    decoder = json.JSONDecoder()
    try:
        given, end = decoder.raw_decode(rest)
        # The arrow must follow the input at once: other numbered lines are no results
        if not rest.startswith(_ARROW, end):
            return None
        output, _ = decoder.raw_decode(rest, end + len(_ARROW))
    except ValueError:
        return None
    # Outputs that JSON has no number for are written as texts; for an input that is a text they may be real outputs
    return given, float(output) if output in ("nan", "inf", "-inf") and not isinstance(given, str) else output


def _write_program(needed: _NeedsCallError) -> str:
    inputs = _write_inputs(needed.inputs)
    if needed.guess is None:
        hypothesis = "it is one known function, or two of them together"
        return _PROGRAM.format(hypothesis=hypothesis, title="A first look at the domain", inputs=inputs)
    guess = needed.guess()
    titles = {1: "Does the hypothesis say what the next call gives?"}
    # The first call has no guess, the second tests it; later ones only average noise
    title = titles.get(needed.place, f"The same inputs, time {needed.place + 1}: the mean has less noise")
    code = guess.code.strip() or _UNKNOWN
    return _TEST.format(hypothesis=guess.description, title=title, inputs=inputs, code=code)


def _write_inputs(inputs: Sequence[Any]) -> str:
    """Return the numbers as an expression, short where they follow in equal steps."""
    if len(inputs) > 2 and not isinstance(inputs[0], str):
        # Short programs are easier to read than hundreds of numbers
        step = inputs[1] - inputs[0]
        if all(math.isclose(inputs[0] + step * place, each) for place, each in enumerate(inputs)):
            return f"[{inputs[0]!r} + {step!r} * place for place in range({len(inputs)})]"
    return repr(list(inputs))


def load(settings: LabSettings, model: str) -> FunctionScientist:
    """Raise UnknownName if a model is named."""
    del settings
    if model:
        raise UnknownName(f"The scripted baseline is no language model: leave the backbone's model {model!r} out.")
    return FunctionScientist()
