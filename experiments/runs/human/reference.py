"""Split the tools' reference of a run into entries to search and insert; and example programs, which run on toybox."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent

HEAD = re.compile(r"^#{2,3} ", re.MULTILINE)
CALL = re.compile(r"([A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){1,3})\((.*)\)[^()]{0,200}$")
EXAMPLE = re.compile(r"\n*^```python\n(?P<code>.*?)\n```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """One thing that a program may use. `call` is what a click on its name inserts; both may be empty."""

    name: str
    signature: str
    text: str
    example: str
    call: str

    @property
    def words(self) -> str:
        """Return the text that a search looks in."""
        return " ".join(f"{self.name} {self.signature} {self.text}".split()).lower()


def entries(reference: str) -> list[Entry]:
    """Return the entries in order; a text without headings is one entry without a name."""
    first, *others = HEAD.split(reference.strip())
    # Every other part: the heading and the text, without the line break.
    found = [entry("", first), *(entry(*part.partition("\n")[::2]) for part in others)]
    return [each for each in found if each.text or each.name]


def entry(head: str, body: str) -> Entry:
    """Return the entry under a heading, such as `tools.text2image(prompt_list: list[str]) -> list[Image]`."""
    example = EXAMPLE.search(body)
    text = body.replace(example.group(0), "", 1).strip() if example else body.strip()
    code = example["code"] if example else ""
    signature = CALL.match(head.strip())
    if signature is None:
        return Entry(head.strip(), "", text, code, "")
    name, parameters = signature[1], signature[2]
    return Entry(name, head.strip().removeprefix(name), text, code, f"{name}({', '.join(_list_required(parameters))})")


def _list_required(parameters: str) -> Iterator[str]:
    """Yield the names of the parameters that must be given."""
    depth, part = 0, ""
    # The added comma ends the last parameter.
    for character in f"{parameters},":
        # True counts as 1.
        depth += (character in "[(") - (character in "])")
        # A comma within brackets separates no parameters.
        if character == "," and depth <= 0:
            name, _, rest = part.strip().partition(":")
            if name and "=" not in rest and not name.startswith("*"):
                yield name.strip()
            part = ""
        else:
            part += character


# --- programs to begin with ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A program, and what it is good for."""

    name: str
    words: str
    code: str


EXAMPLES = (
    Example(
        "Exemplars",
        "The images of the dataset that activate the unit most: where to begin.",
        dedent("""
        def run_experiment(system, tools):
            activations, images = tools.dataset_exemplars(system)
            titles = [f"exemplar {n}" for n in range(1, len(images) + 1)]
            if images:
                tools.log_experiment(activations, images, titles, tools.summarize_images(images))
        """).strip(),
    ),
    Example(
        "Contrast set",
        "Prompts that differ in one property each.",
        dedent("""
        def run_experiment(system, tools):
            prompts = [
                "a red ball on grass",
                "a blue ball on grass",
                "a red cube on grass",
                "a red ball on snow",
            ]
            activations, images = system.neuron(tools.text2image(prompts))
            tools.log_experiment(activations, images, prompts, "colour, shape and ground, one at a time")
        """).strip(),
    ),
    Example(
        "Edits",
        "One image, one thing changed at a time: the cleanest contrast.",
        dedent("""
        def run_experiment(system, tools):
            prompt = "a red ball on grass"
            instructions = ["make the ball blue", "replace the ball with a cube", "change the background to snow"]
            images, titles = tools.edit_images([prompt] * len(instructions), instructions)
            activations, masked = system.neuron(images)
            tools.log_experiment(activations, masked, titles, "what happens when one thing changes?")
        """).strip(),
    ),
    Example(
        "Several seeds",
        "Each prompt drawn several times: means and spread instead of an anecdote.",
        dedent("""
        from statistics import mean, stdev

        def run_experiment(system, tools):
            prompts, times = ["a red ball on grass", "a blue ball on grass"], 5
            for prompt in prompts:
                drawn = tools.text2image([prompt] * times)
                activations, images = system.neuron(drawn)
                titles = [f"{prompt} ({n})" for n in range(1, times + 1)]
                figures = f"{prompt}: mean {mean(activations):.2f}, spread {stdev(activations):.2f}, n = {times}"
                tools.log_experiment(activations, images, titles, figures)
        """).strip(),
    ),
)
