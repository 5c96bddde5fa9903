"""Programs as published and their failures: what the agent is told of them."""

import numpy as np
import pytest
from PIL import Image

from workers.protocols import Bounds
from workers.sandbox.program import program_style

# --- programs as published --------------------------------------------------------------------------

PAPER = """
def run_experiment(system, tools) -> Tuple[int, str]:
    prompts = ["a red ball", "a kite"]
    images = tools.text2image(prompts)
    def label(n):
        return [prompts[i] for i in range(n)]
    activation_list, masked_list = system.neuron(images)
    tools.log_experiment(activation_list, masked_list, label(len(images)), "two toys")
    return activation_list, masked_list
"""

CODE_2024 = """
import torch
import random, math
from typing import List
from PIL import Image
import numpy as np

def execute_command(system, tools) -> torch.Tensor:
    activation_list, image_list = tools.dataset_exemplars(system)
    tools.save_experiment_log(activation_list, image_list, [str(a) for a in activation_list], '')
"""

CODE_2025 = """
images = tools.text2image(["a", "abc"])
def brightest(images):
    return max(system.call_neuron([image])[0][0] for image in images)
print("best", brightest(images))
display("Both:", *images)
"""


def test_it_runs_a_program_in_the_papers_dialect(run, lab):
    result = run(PAPER)
    assert (result.status, result.error) == ("ok", "")
    assert lab.logged[0][0] == [10.0, 6.0]
    assert lab.logged[0][2:] == (["a red ball", "a kite"], "two toys")
    assert lab.logged[0][1][0].getpixel((7, 7)) == (10, 0, 0)
    assert [call.name for call in result.calls] == ["tools.text2image", "system.neuron", "tools.log_experiment"]
    assert result.calls[0].arguments == "['a red ball', 'a kite']"
    assert result.calls[1].arguments == "<2 images>"


def test_it_runs_a_program_in_the_dialect_of_2024(run, lab):
    result = run(CODE_2024)
    assert (result.status, result.error) == ("ok", "")
    assert lab.logged[0][0] == [9.0, 8.0]


def test_it_runs_a_script_in_the_dialect_of_2025(run, lab):
    result = run(CODE_2025)
    assert (result.status, result.output) == ("ok", "best 3.0\n")
    assert lab.logged[0][0] == "Both:"
    assert len(lab.logged[0]) == 3


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (PAPER, "function"),
        (CODE_2024, "function"),
        (CODE_2025, "script"),
        ("text = '''\ndef run_experiment(system, tools):\n'''", "script"),
        ("class A:\n    def run_experiment(self): pass", "script"),
        ("def run_experiment(system, tools", "script"),
        ("-" * 100_000 + "1", "script"),
        ("a\0b", "script"),
    ],
)
def test_it_knows_the_dialect_from_the_text(program, expected):
    assert program_style(program) == expected


@pytest.mark.parametrize(
    "call",
    [
        "",
        "run_experiment(system, tools)",
        "if __name__ == '__main__':\n    run_experiment(system, tools)",
        "def main():\n    run_experiment(system, tools)\nmain()",
    ],
)
def test_it_runs_the_entry_point_once_even_if_the_program_calls_it(run, call):
    assert run("def run_experiment(system, tools):\n    print('ran')\n" + call).output == "ran\n"


def test_it_shows_facts_as_plain_attributes(run):
    result = run("print(system.layer, system.unit, tools.experiment_log)", {"system.layer": "layer4", "system.unit": 7})
    assert result.output == "layer4 7 so far\n"


def test_it_names_what_there_is_when_a_program_asks_for_more(run):
    result = run("tools.teleport()")
    assert result.status == "program_error"
    assert "tools has no attribute 'teleport'; it has dataset_exemplars, display" in result.error


def test_it_lets_annotations_name_what_is_not_imported(run):
    assert run("def f(x: torch.Tensor) -> nn.Module: return x\nprint(f(1))").output == "1\n"


def test_it_tells_which_module_is_missing(run):
    error = run("import skimage_of_mars").error
    assert "ModuleNotFoundError: No module named 'skimage_of_mars'" in error
    assert "A program has Python's standard library, NumPy and Pillow" in error


def test_it_repeats_a_programs_randomness_for_the_same_seed(run):
    program = "import random\nimport numpy as np\nprint(random.random(), np.random.rand(), list({'a', 'b', 'c', 'd'}))"
    first, again, other = (run(program, {"experiment.seed": seed}).output for seed in (5, 5, 2**63))
    assert first == again != other


def test_it_carries_images_both_ways_unchanged(run, lab):
    noise = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    lab.calls["tools.text2image"] = lambda prompts: [Image.fromarray(noise)] * 15
    assert run("tools.display(*tools.text2image([]))").status == "ok"
    assert [np.array_equal(np.asarray(image), noise) for image in lab.logged[0]] == [True] * 15


# --- failures of the program ------------------------------------------------------------------------


def test_it_tells_a_failure_with_the_programs_own_lines_alone(run):
    result = run("def half(x):\n    return x / 0\n\ndef run_experiment(system, tools):\n    half(1)\n")
    assert result.status == "program_error"
    lines = result.error.splitlines()
    assert lines[1:3] == ['  File "experiment.py", line 5, in run_experiment', "    half(1)"]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "guest" not in result.error
    assert result.error.count("File") == 2


def test_it_hides_our_frames_in_the_cause_of_a_failure_too(run):
    result = run("try:\n    system.neuron(1)\nexcept ToolError as error:\n    raise ValueError('no') from error")
    assert result.error.count("File") == 2
    assert "ToolError: system.neuron: image_list must be a list of images" in result.error


@pytest.mark.parametrize(
    ("program", "line", "words"),
    [
        ("x = 1\ndef f(:\n    pass", 2, "invalid syntax"),
        ("x = 1\nreturn x", 2, "'return' outside function"),
    ],
)
def test_it_points_at_an_error_of_syntax(run, program, line, words):
    result = run(program)
    assert result.status == "program_error"
    assert f'File "experiment.py", line {line}' in result.error
    assert "^" in result.error
    assert words in result.error


@pytest.mark.parametrize("program", ["-" * 100_000 + "1", "a\0b", "\ud800", "(" * 10_000])
def test_it_tells_of_a_program_that_cannot_be_compiled(run, program):
    assert run(program).status == "program_error"


def test_it_refuses_a_program_of_a_million_characters(run):
    assert "characters" in run("#" * 1_000_001).error


def test_it_raises_a_tools_refusal_in_the_program(run):
    result = run("try:\n    tools.text2image(['forbidden'])\nexcept ToolError as error:\n    print('caught', error)")
    assert (result.status, result.output) == ("ok", "caught the generator refuses 'forbidden'\n")


def test_it_ends_with_the_tools_error_that_the_program_does_not_catch(run):
    result = run("def run_experiment(system, tools):\n    system.neuron('bird')")
    assert result.status == "tool_error"
    assert "line 2, in run_experiment" in result.error
    assert "ToolError: system.neuron: image_list must be a list of images" in result.error
    assert len(result.calls) == 1


@pytest.mark.parametrize("call", ["system.neuron()", "system.neuron([], 2)", "system.neuron([], size=3)"])
def test_it_tells_of_arguments_that_a_tool_does_not_take(run, call):
    result = run(call)
    assert result.status == "tool_error"
    assert "it takes (image_list)" in result.error


def test_it_tells_of_an_argument_that_cannot_be_sent(run):
    result = run("import numpy as np\nsystem.neuron(np.zeros((4, 4, 3)))")
    assert result.status == "tool_error"
    assert "Image.fromarray" in result.error


def test_it_tells_of_an_answer_that_is_too_large(run, lab):
    lab.calls["tools.text2image"] = lambda prompts: "x" * (3 << 20)
    result = run("tools.text2image([])", bounds=Bounds(frame_bytes=2 << 20))
    assert result.status == "tool_error"
    assert "tools.text2image: what it returns is too large" in result.error


@pytest.mark.parametrize(
    ("code", "status"), [("", "ok"), ("0", "ok"), ("3", "program_error"), ("'why'", "program_error")]
)
def test_it_takes_sys_exit_for_an_end(run, code, status):
    assert run(f"import sys\nprint('before')\nsys.exit({code})").status == status


def test_it_tells_of_a_program_that_leaves_its_process(run):
    result = run("import os\nprint('before')\nos._exit(3)")
    assert (result.status, result.output) == ("killed", "before\n")
    assert "exit code 3" in result.error


def test_it_tells_of_recursion_without_end(run):
    result = run("def f(n):\n    return f(n + 1)\nf(0)")
    assert result.status == "program_error"
    assert "RecursionError" in result.error
    assert len(result.error) < 2000


def test_it_survives_a_program_that_overflows_its_stack(run):
    result = run("import sys\nsys.setrecursionlimit(10**8)\nx = []\nfor _ in range(10**6): x = [x]\nrepr(x)")
    assert result.status == "killed"
    assert "SIGSEGV" in result.error


@pytest.mark.parametrize(
    "raised", ["KeyboardInterrupt", "GeneratorExit", "BaseException('odd')", "ExceptionGroup('g', [ValueError()])"]
)
def test_it_tells_of_whatever_a_program_raises(run, raised):
    result = run(f"raise {raised}")
    assert result.status == "program_error"
    assert raised.split("(")[0] in result.error


def test_it_tells_of_an_error_that_cannot_be_printed(run):
    assert run("class Odd(Exception):\n    def __str__(self): raise self\nraise Odd()").status == "program_error"
