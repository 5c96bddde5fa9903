"""Writes the programs of the experiments: short, for people to read, in the published form of a function.

The docstring of a program names its step, which is how a later reply knows what was done. No design in here.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence

_EXEMPLARS = '''
def run_experiment(system, tools):
    """Step exemplars: the images of the dataset that drive the unit most, described by the tools."""
    activations, images = tools.dataset_exemplars(system)
    if not images:
        print("No image of the dataset activates this unit.")
        return
    names = [f"exemplar {number}" for number in range(1, len(images) + 1)]
    titles = tools.describe_images(images, names).splitlines()
    tools.log_experiment(activations, images, titles, tools.summarize_images(images))
'''

_DRAW = '''
def run_experiment(system, tools):
    """Step {step}: {purpose}"""
    groups = {{
{groups}
    }}
    for group, lines in groups.items():
        prompts = [line.strip() for line in lines.strip().splitlines()]
        activations, images = system.neuron(tools.text2image(prompts))
        tools.log_experiment(activations, images, prompts, group)
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


def exemplars_program() -> str:
    """The program that asks for exemplars and has them described."""
    return _EXEMPLARS.strip()


def draw_program(step: str, purpose: str, groups: Mapping[str, Sequence[str]]) -> str:
    """The program that draws groups of prompts, measures them, and logs each group under its name."""
    parts = [part for name, prompts in groups.items() for part in _parts(name, prompts)]
    return _DRAW.format(step=step, purpose=purpose, groups="\n".join(parts)).strip()


def _parts(name: str, prompts: Sequence[str]) -> Iterator[str]:
    """A group as lines of the program; one too large for a call goes in parts."""
    for start in range(0, len(prompts), AT_ONCE):
        lines = textwrap.indent("\n".join(prompts[start : start + AT_ONCE]), " " * 12)
        again = f", part {start // AT_ONCE + 1}" if len(prompts) > AT_ONCE else ""
        yield f'        {json.dumps(name + again)}: """\n{lines}\n        """,'


def edit_program(step: str, purpose: str, plan: Mapping[str, Sequence[str]]) -> str:
    """The program that draws each prompt once, and edits that image by each of its instructions."""
    lines = "\n".join(
        f"        {json.dumps(prompt)}: {json.dumps(list(instructions))}," for prompt, instructions in plan.items()
    )
    return _EDIT.format(step=step, purpose=purpose, plan=lines).strip()
