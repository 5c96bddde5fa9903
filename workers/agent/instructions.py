"""Render the prompts: Markdown files in `prompts/`, filled in strictly and never expanded twice.

When a prompt is used is decided by `loop`, the only caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

from workers import registry
from workers.errors import RequestError
from workers.record.circuits import CIRCUIT, decode_members
from workers.record.functions import WORD_FAMILIES
from workers.record.limits import QUESTION_CHARS, Limits
from workers.record.systems import SystemSpec
from workers.record.tasks import FUNCTION

MAX_NAME_CHARS = 200
MAX_NAMED = 12
"""Members of a circuit that are named to its agent."""

_EXAMPLES = {
    "dataset_exemplars": '''\
def run_experiment(system, tools):
    """What the exemplars share"""
    activations, images = tools.dataset_exemplars(system)
    titles = [f"exemplar {place}" for place in range(1, len(images) + 1)]
    tools.log_experiment(activations, images, titles, "")''',
    "text2image": '''\
def run_experiment(system, tools):
    """With and without one thing"""
    prompts = ["a first image", "the same image with one thing changed"]
    images = tools.text2image(prompts)
    activations, masked = system.neuron(images)
    tools.log_experiment(activations, masked, prompts, "what this experiment tests")''',
    "call": '''\
def run_experiment(system, tools):
    """The whole domain"""
    inputs = list(range(-128, 129, 4)) if system.family == "numeric" else ["abc", "Two words", "A1 b2", "aaa"]
    tools.log_experiment(inputs, system.call(inputs), "what this experiment tests")''',
}
"""A complete example program for each tool that makes images, and one for functions."""

_FOLDER = Path(__file__).parent / "prompts"


@dataclass(frozen=True)
class Known:
    """What the agent is told of the system before its first experiment, without giving the answer away."""

    class_name: str = ""
    """For a class: its name."""
    scale: str = ""
    """For a class: sentences on which activations are low and high."""
    hints: str = ""
    """For a function: some inputs with outputs, one a line; "" if the agent starts with none."""


def render(name: str, **variables: str) -> str:
    """Fill in the variables of `prompts/<name>.md`; values are inserted as they are.

    Raises ValueError unless exactly the prompt's variables are given.
    """
    template = _template(name)
    # Strict both ways: a variable that the prompt lacks is a mistake, too.
    wanted = set(template.get_identifiers())
    if wanted != set(variables):
        raise ValueError(f"Prompt {name!r} takes the variables {sorted(wanted)}, not {sorted(variables)}.")
    return template.substitute(variables).strip()


@cache
def _template(name: str) -> Template:
    # Cached: prompts do not change while a worker runs.
    return Template((_FOLDER / f"{name}.md").read_text(encoding="utf-8"))


def choose_example(reference: str, *tools: str) -> str:
    """Return a short example program that uses the first of these tools (keys of `_EXAMPLES`) named in the reference.

    A reference that names none of them gets the first example. A function has its own program.
    """
    if "### system.call(" in reference:
        return _EXAMPLES["call"]
    return _EXAMPLES[next((name for name in tools if f"### tools.{name}(" in reference), tools[0])]


def assignment(task: str, question: str, system: SystemSpec, limits: Limits, known: Known) -> str:
    """Return the first user message. Raises RequestError if the question is empty or too long."""
    words = question.strip()
    if not words:
        raise RequestError("The question is empty. Write what you want to know about the system.")
    if len(words) > QUESTION_CHARS:
        raise RequestError(
            f"The question has {len(words):,} characters, and at most {QUESTION_CHARS:,} are allowed. Shorten it."
        )
    budget = f"You have at most {limits.rounds} rounds. Plan for them: concluding early on good evidence is welcome."
    if limits.rounds is None:
        budget = "Take as many rounds as the evidence needs, and no more."
    budget = "\n\n".join(filter(None, (budget, known.scale, _tell_hints(known.hints))))
    name = f"{task}_words" if task == FUNCTION and system.layer in WORD_FAMILIES else task
    return render(name, question=quote(words), system=system_name(system, known.class_name), budget=budget)


def _tell_hints(hints: str) -> str:
    return f"To begin with, this is what the function gives for some inputs:\n\n{hints}" if hints else ""


def system_name(system: SystemSpec, class_name: str = "") -> str:
    """Return the system in words, such as "unit 7 of layer4 in the model toybox"; for a synthetic neuron only a
    number.
    """
    # The name of the network would tell the agent what a synthetic neuron detects.
    if blind := registry.blind_name(system.kind, system.model, system.layer, system.unit):
        return f"{blind}, whose network is not named"
    if system.kind == CIRCUIT:
        return f"{_name_circuit(system)} in the model {system.model}"
    where = f"{system.kind} {system.unit} of {system.layer} in the model {system.model}"
    # On one line and cut: the name comes from a model's file.
    named = " ".join(class_name.split())[:MAX_NAME_CHARS]
    return f"the class \u201c{named}\u201d ({where})" if named else where


def _name_circuit(system: SystemSpec) -> str:
    """Return the number of members of a circuit and the names of the first."""
    members = decode_members(system.options.get("members", ()))
    some = "; ".join(map(str, members[:MAX_NAMED])) + ("; and more" if len(members) > MAX_NAMED else "")
    return f"a circuit of {len(members)} unit{'' if len(members) == 1 else 's'}, studied together ({some}),"


def quote(text: str) -> str:
    """Return a block quotation."""
    # Every line is marked, so that no line of a person's text can pass for one of ours.
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def rounds_told(round_number: int, limits: Limits) -> str:
    """Say how many rounds are left after this one; "" without a limit."""
    if limits.rounds is None:
        return ""
    left = max(0, limits.rounds - round_number)
    return f"This was round {round_number} of {limits.rounds}: {left or 'none'} {'is' if left == 1 else 'are'} left."
