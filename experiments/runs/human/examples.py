"""Programs to begin with: each runs as it stands on toybox, and says what to change for another unit."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


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
