"""Programs to begin with: each runs as it stands on toybox, and says what to change for another unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Example:
    name: str
    words: str
    """What it is good for."""
    code: str


def example(name: str, words: str, code: str) -> Example:
    return Example(name, words, dedent(code).strip())


EXAMPLES: Sequence[Example] = (
    example(
        "Exemplars",
        "The images of the dataset that activate the unit most: where to begin.",
        """
        def run_experiment(system, tools):
            activations, images = tools.dataset_exemplars(system)
            titles = [f"exemplar {n}" for n in range(1, len(images) + 1)]
            if images:
                tools.log_experiment(activations, images, titles, tools.summarize_images(images))
        """,
    ),
    example(
        "Contrast set",
        "Prompts that differ in one property each.",
        """
        def run_experiment(system, tools):
            prompts = [
                "a red ball on grass",
                "a blue ball on grass",
                "a red cube on grass",
                "a red ball on snow",
            ]
            activations, images = system.neuron(tools.text2image(prompts))
            tools.log_experiment(activations, images, prompts, "colour, shape and ground, one at a time")
        """,
    ),
    example(
        "Edits",
        "One image, one thing changed at a time: the cleanest contrast.",
        """
        def run_experiment(system, tools):
            prompt = "a red ball on grass"
            instructions = ["make the ball blue", "replace the ball with a cube", "change the background to snow"]
            images, titles = tools.edit_images([prompt] * len(instructions), instructions)
            activations, masked = system.neuron(images)
            tools.log_experiment(activations, masked, titles, "what happens when one thing changes?")
        """,
    ),
    example(
        "Several seeds",
        "Each prompt drawn several times: means and spread instead of an anecdote.",
        """
        from statistics import mean, stdev

        def run_experiment(system, tools):
            prompts, times = ["a red ball on grass", "a blue ball on grass"], 5
            for prompt in prompts:
                drawn = tools.text2image([prompt] * times)
                activations, images = system.neuron(drawn)
                titles = [f"{prompt} ({n})" for n in range(1, times + 1)]
                figures = f"{prompt}: mean {mean(activations):.2f}, spread {stdev(activations):.2f}, n = {times}"
                tools.log_experiment(activations, images, titles, figures)
        """,
    ),
)
