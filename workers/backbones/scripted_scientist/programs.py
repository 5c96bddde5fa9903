"""Writes the programs of the experiments: short, for people to read, in the published form of a function.

The docstring of a program names its step, which is how a later reply knows what was done. No design in here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

_EXEMPLARS = '''
def run_experiment(system, tools):
    """Step exemplars: the images of the data set that drive the unit most, described by the tools."""
    activations, images = tools.dataset_exemplars(system)
    if not images:
        print("No image of the data set activates this unit.")
        return
    names = [f"exemplar {number}" for number in range(1, len(images) + 1)]
    titles = tools.describe_images(images, names).splitlines()
    tools.log_experiment(activations, images, titles, tools.summarize_images(images))
'''

_DRAW = '''
def run_experiment(system, tools):
    """Step {step}: {purpose}"""
    prompts = """
{prompts}
    """.strip().splitlines()
    prompts = [prompt.strip() for prompt in prompts]
    for start in range(0, len(prompts), {at_once}):
        batch = prompts[start : start + {at_once}]
        activations, images = system.neuron(tools.text2image(batch))
        tools.log_experiment(activations, images, batch, "")
'''

_EDIT = '''
def run_experiment(system, tools):
    """Step {step}: {purpose}"""
    plan = {{
{plan}
    }}
    for prompt, instructions in plan.items():
        original = tools.text2image([prompt])[0]
        edits = tools.edit_images([original] * len(instructions), instructions)[0][1::2]
        activations, images = system.neuron([original, *edits])
        tools.log_experiment(activations, images, [prompt, *instructions], "")
'''

AT_ONCE = 64
"""Images in one call of a tool."""


def exemplars() -> str:
    """The program that asks for exemplars and has them described."""
    return _EXEMPLARS.strip()


def draw(step: str, purpose: str, prompts: Sequence[str]) -> str:
    """The program that draws prompts, measures and logs them."""
    lines = textwrap.indent("\n".join(prompts), " " * 8)
    return _DRAW.format(step=step, purpose=purpose, prompts=lines, at_once=AT_ONCE).strip()


def edit(step: str, purpose: str, plan: Mapping[str, Sequence[str]]) -> str:
    """The program that draws each prompt once, and edits that image by each of its instructions."""
    lines = "\n".join(f"        {prompt!r}: {list(instructions)!r}," for prompt, instructions in plan.items())
    return _EDIT.format(step=step, purpose=purpose, plan=lines).strip()
