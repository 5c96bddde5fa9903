"""The research tasks: one row each, which forms, pages, the agent's rules and the API read.

The prompt of a task is `workers/agent/prompts/<key>.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workers.record.circuits import CIRCUIT
from workers.record.functions import WORD_FAMILIES


@dataclass(frozen=True)
class Task:
    key: str
    label: str
    """Display name."""
    line: str
    """What it is about and how it ends, in one line."""
    question: str
    """Default question about a unit."""
    question_of_class: str
    """Default question about a class by its name; "" to use `question`."""
    question_of_neuron: str
    """Default question about a synthetic neuron, whose layer and name would reveal the answer."""
    answer: tuple[str, ...]
    """Parts of its conclusion, in the order in which a person fills them in."""
    needs: tuple[tuple[str, ...], ...]
    """Tags that an answer needs. Each inner tuple lists alternatives; the agent is told the first."""
    of_classes: bool = False
    """True if it is about a class, so that the form lists a model's classes by name."""
    of_functions: bool = False
    """True if it is only for functions."""
    gives_verdict: bool = False
    """True if its labels are a verdict and do not say what the unit responds to."""
    is_open: bool = False
    """True if any question is allowed. A label may then describe something else, so a failed one is not sent back."""
    confirms: bool = False
    """True if statements of its conclusion are tested on images drawn afterwards."""


FUNCTION = "function"
_ROWS = (
    Task(
        "describe",
        "Describe a neuron",
        "What makes the unit fire? Ends in a description and one or more labels.",
        "What does unit {unit} of {layer} in {model} respond to?",
        "What does {model} need to see to call an image “{name}” (unit {unit} of {layer})?",
        "What does this neuron respond to?",
        ("description", "labels"),
        (("DESCRIPTION", "BIAS"), ("LABEL",)),
    ),
    Task(
        "bias",
        "Find a bias",
        "In which contexts does the model treat a class differently? Ends in a description of the bias.",
        "Is there a bias in what unit {unit} of {layer} in {model} responds to?",
        "In which contexts does {model} find “{name}” (unit {unit} of {layer}) more or less probable?",
        "Is there a bias in what this neuron responds to?",
        ("bias", "labels"),
        (("BIAS", "DESCRIPTION"), ("LABEL",)),
        of_classes=True,
        gives_verdict=True,
        confirms=True,
    ),
    Task(
        "spurious",
        "Find spurious features",
        "Does the unit rely on the object itself or on what is usually around it? Ends in a verdict.",
        "Does unit {unit} of {layer} in {model} rely on a spurious feature?",
        "Does {model} rely on a spurious feature for “{name}” (unit {unit} of {layer})?",
        "Does this neuron rely on a spurious feature?",
        ("reasoning", "description", "labels"),
        (("REASONING", "DESCRIPTION"), ("LABEL",)),
        gives_verdict=True,
    ),
    Task(
        "free",
        "Free question",
        "Your own question, put to the agent as you write it.",
        "Which change to an image lowers unit {unit} of {layer} in {model} the most?",
        "",
        "Which change to an image lowers this neuron's activation the most?",
        ("description", "labels"),
        (("DESCRIPTION", "BIAS"),),
        is_open=True,
    ),
    Task(
        FUNCTION,
        "Describe a function",
        "What does a function of numbers, texts or words compute? Ends in a description, a domain and code.",
        "What does function {unit} of {layer} compute?",
        "",
        "What does this function compute?",
        ("description",),
        (("DESCRIPTION",), ("DOMAIN",), ("CODE",)),
        of_functions=True,
    ),
)
_UNIT = "unit {unit} of {layer} in {model}"
TASKS: Mapping[str, Task] = {row.key: row for row in _ROWS}
DEFAULT_TASK = "describe"


def choices() -> list[tuple[str, str]]:
    """Return key and display name of each task, for a form."""
    return [(task.key, task.label) for task in _ROWS]


def label(key: str) -> str:
    """Return the display name of a task, or the key of an unknown one."""
    return TASKS[key].label if key in TASKS else key


def find_task(key: str) -> Task:
    """Return the task; an unknown one is a free question."""
    # Tasks of later versions are treated like the most general one
    return TASKS.get(key, TASKS["free"])


def list_needs(task: str, layer: str) -> tuple[tuple[str, ...], ...]:
    """Return the tags that an answer about a unit of this layer needs, as in `Task.needs`.

    An answer about a function of words is a description alone, because code cannot compare words.
    """
    return (("DESCRIPTION",),) if task == FUNCTION and layer in WORD_FAMILIES else find_task(task).needs


def explain_mismatch(task: str, kind: str) -> str:
    """Return why this task cannot be asked of a system of this kind; "" if it can."""
    # Functions and images exclude each other
    if find_task(task).of_functions == (kind == FUNCTION):
        return ""
    if kind == FUNCTION:
        return f"A function takes no images: choose the task “{TASKS[FUNCTION].label}”."
    remedy = "Choose the model “functions”, one of published functions (“find:…”), or another task."
    return f"“{TASKS[FUNCTION].label}” is asked of functions alone. {remedy}"


def questions(kind: str, model: str, layer: str, unit: int | str, name: str = "") -> dict[str, str]:
    """Return a default question for each task about a unit of a layer of this kind, called `name` if units have names.

    It names the class of a logit, but reveals nothing about a synthetic neuron. For a circuit, `unit` is its number
    of members: its name may say what it responds to.
    """
    # A name or a layer would give away its concepts
    if kind == "concept":
        return {task.key: task.question_of_neuron for task in _ROWS}
    if kind == CIRCUIT:
        told = f"a circuit of {unit} member{'' if unit == 1 else 's'} in {model}"
        # A circuit is named by its size alone
        return {task.key: task.question.replace(_UNIT, told).format(unit=unit, layer=layer) for task in _ROWS}
    is_class = bool(name) and kind == "logit"
    templates = {task.key: (task.question_of_class if is_class else "") or task.question for task in _ROWS}
    return {key: text.format(model=model, layer=layer, unit=unit, name=name) for key, text in templates.items()}
