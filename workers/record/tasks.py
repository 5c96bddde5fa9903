"""The research tasks: a row each, from which forms, pages, the agent's rules and the API take what they need.

A task's prompt is `workers/agent/prompts/<key>.md`.
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
    """What people call it."""
    line: str
    """What it is about and how it ends, in a line."""
    question: str
    """What is asked of a unit, unless the person writes something else."""
    question_of_class: str
    """The same of a class, which has a name; "" where that makes no difference."""
    question_of_neuron: str
    """The same of a synthetic neuron, whose layer and name would tell the agent what to find."""
    answer: tuple[str, ...]
    """What its conclusion consists of, in the order in which a person is asked for it."""
    needs: tuple[tuple[str, ...], ...]
    """Tags that an answer has; of several in brackets one will do, the first is the one that the agent is told of."""
    of_classes: bool = False
    """Whether it is about a class, so that the form offers a model's classes by name."""
    of_functions: bool = False
    """Whether it is asked of functions, and of nothing else."""
    gives_verdict: bool = False
    """Whether its labels are a verdict, rather than what the unit responds to."""
    is_open: bool = False
    """Whether the question may be any: a label may then be of something else, and one that fails is not sent back."""
    confirms: bool = False
    """Whether statements of its conclusion are to be tested on images drawn after them."""


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
    """Key and label of each, for a form."""
    return [(task.key, task.label) for task in _ROWS]


def label(key: str) -> str:
    """What people call a task; the key itself where it is not known here."""
    return TASKS[key].label if key in TASKS else key


def find_task(key: str) -> Task:
    """The task; one that is not known here is a free question."""
    return TASKS.get(key, TASKS["free"])


def list_needs(task: str, layer: str) -> tuple[tuple[str, ...], ...]:
    """Tags that an answer about a unit of this layer has, as `Task.needs`. About a function of words it is a
    description alone: code could not compare words."""
    return (("DESCRIPTION",),) if task == FUNCTION and layer in WORD_FAMILIES else find_task(task).needs


def explain_mismatch(task: str, kind: str) -> str:
    """Why this task cannot be asked of a system of this kind; "" if it can."""
    if find_task(task).of_functions == (kind == FUNCTION):
        return ""
    if kind == FUNCTION:
        return f"A function takes no images: choose the task “{TASKS[FUNCTION].label}”."
    remedy = "Choose the model “functions”, one of published functions (“find:…”), or another task."
    return f"“{TASKS[FUNCTION].label}” is asked of functions alone. {remedy}"


def questions(kind: str, model: str, layer: str, unit: int | str, name: str = "") -> dict[str, str]:
    """A sensible question for each task about a unit of a layer of this kind, called `name` where units have names.

    It names the class of a logit, and tells nothing of a synthetic neuron; of a circuit `unit` is how many members it
    has, and not its name, which may say what it responds to.
    """
    if kind == "concept":
        return {task.key: task.question_of_neuron for task in _ROWS}
    if kind == CIRCUIT:
        told = f"a circuit of {unit} member{'' if unit == 1 else 's'} in {model}"
        return {task.key: task.question.replace(_UNIT, told).format(unit=unit, layer=layer) for task in _ROWS}
    is_class = bool(name) and kind == "logit"
    templates = {task.key: (task.question_of_class if is_class else "") or task.question for task in _ROWS}
    return {key: text.format(model=model, layer=layer, unit=unit, name=name) for key, text in templates.items()}
