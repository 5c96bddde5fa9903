"""What one program leaves to the next of its run: plain data, imports, functions and classes, and never a trap."""

import pytest

from workers.protocols import Bounds
from workers.sandbox import program, saved_state, values
from workers.sandbox.program import MAX_CHARS


def test_an_import_of_everything_takes_no_name_that_every_program_has(run):
    first = run("from os import *\nprint(callable(system))")  # os.system, in this program
    assert first.output == "True\n"
    assert run("print(hasattr(system, 'neuron'), getcwd is not None)", state=first.state).output == "True True\n"


# --- plain data -------------------------------------------------------------------------------------


def test_it_shows_a_script_the_names_of_the_one_before(run):
    first = run("import numpy\nn, image, a, pair = 3, Image.new('RGB', (4, 4), 'red'), numpy.eye(2), [(1.5, 'x')]")
    second = run("print(n, image.getpixel((0, 0)), a.sum(), pair)\nn += 1", state=first.state)
    assert second.output == "3 (255, 0, 0) 2.0 [(1.5, 'x')]\n"
    assert run("print(n)", state=second.state).output == "4\n"


def test_it_keeps_what_was_bound_before_a_failure(run):
    assert run("print(n)", state=run("n = 3\n1 / 0").state).output == "3\n"


def test_it_keeps_the_state_it_was_given_when_a_program_is_stopped(run):
    state = run("n = 3").state
    assert run("n = 4\nwhile True: pass", state=state, bounds=Bounds(seconds=0.3)).state == state


def test_it_says_what_was_too_large_to_keep(run):
    result = run("big = bytes(40 << 20)\nsmall = 1")
    assert result.status == "ok"
    assert "too large to be kept for the next experiment: big" in result.output
    assert run("print(small)", state=result.state).output == "1\n"


def test_it_does_not_let_state_hide_system_and_tools(run):
    state = run("system = tools = display = 1").state
    assert run("print(system.neuron([]), display('x'))", state=state).output == "([], []) None\n"


# --- definitions ------------------------------------------------------------------------------------

FIRST = """
import numpy as np, os.path
from collections import Counter as Count
from dataclasses import dataclass
OFFSET = 2

def _shift(value, by=OFFSET):
    return value + by

def shifted(values):
    return [_shift(value) for value in values]

def mean_of(prompts: "list[torch.Tensor]") -> nn.Module:
    return np.mean(shifted(system.neuron(tools.text2image(prompts))[0]))

@dataclass
class Trial:
    prompt: str  # a comment stays
    mean: float

def run_experiment(system, tools):
    print(mean_of(["ab"]))
"""


def test_imports_functions_and_classes_are_there_in_the_next_program(run):
    first = run(FIRST)
    assert (first.status, first.output) == ("ok", "4.0\n")
    second = run("print(Trial('abc', mean_of(['abc'])), Count('aab')['a'], os.path.sep)", state=first.state)
    assert (second.output, second.error) == ("Trial(prompt='abc', mean=np.float64(5.0)) 2 /\n", "")
    third = run("OFFSET = 0\nprint(shifted([1]), mean_of(['abc']))", state=second.state)
    assert third.output == "[3] 5.0\n"


def test_an_entry_point_is_not_called_again_by_the_next_script(run):
    assert run("print('script')", state=run(FIRST).state).output == "script\n"


def test_what_published_scripts_take_for_granted_needs_no_import(run):
    program = "print(np.mean([1]), statistics.mean([2]), math.pi > 3, random.random() < 1, PIL.Image is Image)"
    assert run(program).output == "1.0 2 True True True\n"


def test_a_name_means_what_it_was_bound_to_last(run):
    state = run("f = 1\ndef f(): return 'function'").state
    assert run("print(f())", state=state).output == "function\n"
    state = run("f = 3", state=state).state
    assert run("print(f)", state=state).output == "3\n"
    state = run("def f(): return 'again'", state=state).state
    assert run("print(f())", state=state).output == "again\n"


def test_what_a_failed_program_did_not_come_to_define_is_not_there(run):
    state = run("def f(): return 1\n1 / 0\ndef g(): return 2").state
    assert run("print(f())", state=state).output == "1\n"
    assert "NameError: name 'g'" in run("g()", state=state).error


@pytest.mark.parametrize(
    "program",
    [
        "def f(x=1 / zero):\n    pass",
        "@once\ndef f():\n    pass",
        "class f:\n    value = done.pop()",
        "def f(stop=leave(zero)):\n    pass",
    ],
)
def test_a_definition_that_cannot_be_repeated_ends_in_a_sentence(run, program):
    """It works once, and by the next program what it needed is another."""
    before = "zero, done = 1, [1]\ndef leave(n):\n    if not n: raise SystemExit(3)\nonce = [lambda f: f].pop()\n"
    state = run(f"{before}{program}\nzero = 0").state
    other = run("print('well')", state=state)
    assert (other.status, other.output) == ("ok", "well\n")
    result = run("f\nprint('reached')", state=state)
    assert "[f of an earlier experiment cannot be defined again (" in result.output
    assert "NameError: name 'f'" in result.error
    assert "cannot be defined again" not in run("print(f)", state=result.state).output


def test_a_definition_that_takes_forever_is_given_up_and_none_starts_after_it(monkeypatch):
    monkeypatch.setattr(program, "SECONDS", 0.02)
    namespace: dict[str, object] = {}
    sources = {"f": "class f:\n    while True: pass", "g": "def g(): return 1"}
    failed = program.define(sources, namespace)
    assert failed == dict.fromkeys(sources, "TimeoutError: the definitions together took longer than 0.02 s")
    assert not {"f", "g"} & set(namespace)


def test_definitions_too_long_to_keep_are_named(run):
    huge = "def huge():\n" + "    x = 1\n" * (MAX_CHARS // 10 + 1)
    result = run(f"{huge}\ndef small(): return 1")
    assert "too large to be kept for the next experiment: huge" in result.output
    assert run("print(small())", state=result.state).output == "1\n"


def test_an_error_in_an_earlier_function_is_told_with_its_line(run):
    state = run("def f(x):\n    y = x\n    return 1 / y").state
    error = run("f(0)", state=state).error
    assert 'File "earlier_experiment.py", line 3, in f\n    return 1 / y' in error
    assert "guest" not in error


# --- nothing of it is a trap ------------------------------------------------------------------------

TAKEN = ("__builtins__", "Image", "np", "system", "tools", "display", "print", "ToolError", "_x", "not a name")


def test_no_state_takes_the_place_of_what_every_program_has(run):
    piece = values.encode_state({"value": {}})
    sources = {name: f"{name} = None" for name in TAKEN if name.isidentifier()}
    for state in (dict.fromkeys(TAKEN, piece), {"values": dict.fromkeys(TAKEN, piece), "sources": sources}):
        forged = values.encode_state(state)
        result = run("print(Image.new('L', (1, 1)).size, np.ones(1), bool(display and system and tools))", state=forged)
        assert (result.output, result.error) == ("(1, 1) [1.] True\n", "")


def test_a_name_that_every_program_has_is_not_kept_and_that_is_said(run):
    result = run("max, Image, mine = 5, 'picture', 1\ndef display(x): print('mine')\ndisplay(1)")
    assert "usual meaning again: Image, max" in result.output
    after = run("print(max(1, 2), mine, Image.__name__)\ndisplay('x')", state=result.state)
    assert (after.output, after.error) == ("2 1 PIL.Image\n", "")


def test_the_state_of_earlier_versions_is_read():
    old = values.encode_state({"n": values.encode_state({"value": 3}), "values": values.encode_state({"value": 4})})
    assert saved_state.restore_state(old) == ({"n": 3, "values": 4}, {})
