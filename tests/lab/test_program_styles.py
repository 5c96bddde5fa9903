"""Programs written for each published API run unchanged: in the real sandbox, against the real tools."""

import pytest

from tests.support.exemplar_index import index_of
from tests.support.tiny_lab import TinyContext
from workers.lab import program_api
from workers.protocols import Bounds
from workers.sandbox.program import program_style

PAPER = """
def run_experiment(system, tools):
    activation_list, image_list = tools.dataset_exemplars(system)
    titles = [f"dataset exemplar {i}" for i in range(len(activation_list))]
    summary = tools.summarize_images(image_list)
    tools.log_experiment(activation_list, image_list, titles, summary)
    all_images, all_prompts = tools.edit_images(["a blue one"], ["make it green"])
    activation_list, activation_map_list = system.neuron(all_images)
    descriptions = tools.describe_images(activation_map_list, all_prompts)
    tools.log_experiment(activation_list, activation_map_list, all_prompts, descriptions)
    print(len(tools.results_list), tools.results_list[0]["dataset exemplar 0"]["activation"])
"""

CODE_2024 = """
import numpy as np

def execute_command(system, tools):
    prompts = ["a green one", "a blue one"]
    images = tools.text2image(prompts)
    activations, masked = system.call_neuron(images)
    print(system.layer, system.neuron_num, images[0].size, np.mean(activations))
    tools.save_experiment_log(activations, masked, prompts, "two colours")
"""

SCRIPT_2025 = """
exemplars = tools.dataset_exemplars(system)
for activation, image in exemplars:
    tools.display(image, f"Activation: {activation}")
images = [image for _, image in exemplars]
edited, prompts = tools.edit_images(images[:1] * 2, ["make it blue", "make it green"])
scores, masked = system.call_neuron(edited)
for score, image, prompt in zip(scores, masked, prompts):
    tools.display(image, f"{prompt}: {score}")
"""

SCENES = """
images = tools.game_engine(["a green ball"])
activations, masked = system.neuron(images)
tools.display(masked[0], tools.describe(masked), tools.summarize(images))
turned, titles = tools.text2model(["a green ball"], camera=(40, 10), light=[0.5, 1.5])
tools.log_experiment(*system.neuron(turned), titles)
"""


@pytest.fixture
def context(tmp_path):
    return TinyContext(index_of(tmp_path))


def run(sandbox, context, program, state=b""):
    calls = program_api.list_calls(context.system, context.tools, program_style(program))
    return sandbox.run(program, calls, program_api.list_facts(context.system), bounds=Bounds(seconds=20), state=state)


def seen(context):
    return [
        (each.title, each.activation, each.origin) for entry in context.tools.entries for each in entry.observations
    ]


def test_a_program_of_the_paper_runs(sandbox, context):
    result = run(sandbox, context, PAPER)
    assert (result.status, result.output, result.error) == ("ok", "5 1.0\n", "")
    assert [(title, pytest.approx(activation), origin) for title, activation, origin in seen(context)] == [
        ("dataset exemplar 0", 1.0, "exemplar"),
        ("dataset exemplar 1", 1.0, "exemplar"),
        ("dataset exemplar 2", 0.2, "exemplar"),
        ("a blue one", 0.0, "original"),
        ("make it green", 0.0, "edited"),
    ]
    assert [entry.text for entry in context.tools.entries] == [
        "2 of 3 are bright",
        "a blue one: bright\nmake it green: bright",
    ]


def test_a_program_of_2024_runs(sandbox, context):
    result = run(sandbox, context, CODE_2024)
    assert (result.status, result.output) == ("ok", "patches 0 (8, 8) 0.0\n")
    assert [each[0] for each in seen(context)] == ["a green one", "a blue one"]


def test_a_script_of_2025_runs(sandbox, context):
    result = run(sandbox, context, SCRIPT_2025)
    assert (result.status, result.error) == ("ok", "")
    titles = [each[0] for each in seen(context)]
    assert titles[:2] == ["Activation: 1.0", "Activation: 1.0"]
    assert titles[3:] == ["original image: 1.0", "make it blue: 0.0", "original image: 1.0", "make it green: 0.0"]
    assert [each[2] for each in seen(context)] == ["exemplar"] * 4 + ["edited", "exemplar", "edited"]


ROUNDS_2025 = (
    """
import numpy as np
from collections import defaultdict

def measured(prompts):
    activations, images = system.call_neuron(tools.text2image(prompts))
    return list(zip(activations, images, prompts))

found = defaultdict(list)
""",
    """
for activation, image, prompt in measured(["a red one", "a blue one"]):
    tools.display(image, prompt)
means = [activation for activation, _, _ in measured(["a red one"])]
print(statistics.mean(means), np.max(means))
""",
    "print(len(means), defaultdict(int)['none'], isinstance(tools.text2image(['red'])[0], PIL.Image.Image))",
)


def test_scripts_of_2025_go_on_where_the_one_before_ended(sandbox, context):
    state, output = b"", []
    for program in ROUNDS_2025:
        result = run(sandbox, context, program, state)
        assert (result.status, result.error) == ("ok", "")
        state = result.state
        output.append(result.output)
    assert output == ["", "1.0 1.0\n", "1 0 True\n"]


IN_EVERY_DIALECT = (
    """
def run_experiment(system, tools):
    images, titles = tools.edit_images(["a blue one"] * 2, ["make it fly", "make it green"])
    activations, masked = system.neuron(images)
    tools.log_experiment(activations, masked, titles, tools.describe_images(masked, titles))
    print(*titles, sep="; ")
""",
    """
images, titles = tools.edit_images(["a blue one"] * 2, ["make it fly", "make it green"])
for score, image, title in zip(*system.call_neuron(images), titles):
    tools.display(image, title)
print(*titles, sep="; ")
""",
    """
original = tools.text2image(["a blue one"])[0]
tools.display(original, "a blue one")
for image, title in zip(tools.edit_image(original, ["make it fly", "make it green"]), ["make it fly", "make it green"]):
    tools.display(image, title)
print("make it fly (refused: there is no way to make it fly)")
""",
)


@pytest.mark.parametrize("program", IN_EVERY_DIALECT, ids=["function", "script", "single edits"])
def test_a_refused_edit_leaves_the_rest_of_the_program_as_it_is(sandbox, context, program):
    result = run(sandbox, context, program)
    assert (result.status, result.error) == ("ok", "")
    assert "make it fly (refused: there is no way to make it fly)" in result.output
    assert "make it fly" not in {title for title, _, _ in seen(context)}
    assert seen(context)[-1][::2] == ("make it green", "edited")
    assert any("make it fly (refused" in entry.text for entry in context.tools.entries)
    remark = context.tools.entries[-1].text
    assert remark.startswith(
        "Refused, so without an image or an activation: 'make it fly' (there is no way to make it fly)"
    )


def test_a_script_about_scenes_runs(sandbox, context):
    result = run(sandbox, context, SCENES)
    assert (result.status, result.error) == ("ok", "")
    assert [entry.text for entry in context.tools.entries] == ["image 1: bright\n1 of 1 are bright", ""]
    titles = [each.title for entry in context.tools.entries for each in entry.observations]
    dark, light = (f"a green ball, camera 40°, elevation 10°, light {light}" for light in (0.5, 1.5))
    assert titles == ["a green ball", dark, light]


def test_a_wrong_argument_is_told_to_the_program_and_what_it_logged_before_is_kept(sandbox, context):
    result = run(sandbox, context, 'tools.display("before")\nsystem.neuron([1])\n')
    assert result.status == "tool_error"
    assert "image_list[0] must be an image, but is a int" in result.error
    assert [entry.text for entry in context.tools.entries] == ["before"]
